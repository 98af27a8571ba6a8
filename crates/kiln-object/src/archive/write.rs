//! Writing static libraries that linkers take: the GNU form, with an index and nothing that differs from run to run.

use crate::Error;

/// A file for a static library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMember {
    /// Its file name.
    pub name: String,
    /// Its content.
    pub data: Vec<u8>,
    /// The names that the index says it defines. A linker takes the file when one of them is undefined.
    pub defines: Vec<String>,
}

/// Length of a member's header.
const HEADER: usize = 60;
/// Longest name that stands in a header itself, before the slash that ends it.
const SHORT: usize = 15;

/// The bytes of a static library with these files, in this order. Owners, times and modes are fixed.
///
/// # Errors
/// For a name that is empty or has a slash, a line end or a NUL in it, and for a library of 4 GiB or more.
pub fn write(members: &[NewMember]) -> Result<Vec<u8>, Error> {
    let mut long_names = Vec::new();
    let mut names = Vec::new();
    for member in members {
        if member.name.is_empty() || member.name.contains(['/', '\n', '\0']) {
            return Err(Error::Archive { cause: format!("`{}` is no name of a member", member.name.escape_debug()) });
        }
        if member.name.len() <= SHORT {
            names.push(format!("{}/", member.name));
        } else {
            names.push(format!("/{}", long_names.len()));
            long_names.extend_from_slice(member.name.as_bytes());
            long_names.extend_from_slice(b"/\n");
        }
    }
    let all = || members.iter().flat_map(|member| &member.defines);
    let index_size = 4 + 4 * all().count() + all().map(|name| name.len() + 1).sum::<usize>();

    // Offsets are those of the members' headers.
    let mut position = 8 + HEADER + even(index_size);
    if !long_names.is_empty() {
        position += HEADER + even(long_names.len());
    }
    let too_large = || Error::Archive { cause: "4 GiB are too many".to_owned() };
    let mut index = u32::try_from(all().count()).map_err(|_| too_large())?.to_be_bytes().to_vec();
    for member in members {
        let offset = u32::try_from(position).map_err(|_| too_large())?.to_be_bytes();
        member.defines.iter().for_each(|_| index.extend_from_slice(&offset));
        position += HEADER + even(member.data.len());
    }
    for name in all() {
        if name.contains('\0') {
            return Err(Error::Archive { cause: format!("the name `{}` has a NUL in it", name.escape_debug()) });
        }
        index.extend_from_slice(name.as_bytes());
        index.push(0);
    }

    let mut bytes = b"!<arch>\n".to_vec();
    append(&mut bytes, "/", &index, 0);
    if !long_names.is_empty() {
        append(&mut bytes, "//", &long_names, b'\n');
    }
    for (member, name) in members.iter().zip(&names) {
        append(&mut bytes, name, &member.data, b'\n');
    }
    Ok(bytes)
}

/// Appends a header and its data, filled up to an even length.
fn append(bytes: &mut Vec<u8>, name: &str, data: &[u8], fill: u8) {
    // What fills the index up is part of it, as GNU ar has it; of other data it is not.
    let size = if fill == 0 { even(data.len()) } else { data.len() };
    bytes.extend_from_slice(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644).as_bytes());
    bytes.extend_from_slice(data);
    if !data.len().is_multiple_of(2) {
        bytes.push(fill);
    }
}

fn even(length: usize) -> usize {
    length.next_multiple_of(2)
}
