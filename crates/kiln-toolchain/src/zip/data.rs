//! The bytes of a member.

use std::io::Read;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use super::bytes::{slice_at, u16_at, u32_at};
use super::directory::LOCAL_LEN;
use super::{Member, Method, ZipError};

pub(super) const LOCAL_SIGNATURE: u32 = 0x0403_4b50;

impl Member {
    /// The content of the member, out of `extent`: the bytes of the file from [`Member::start`] to [`Member::end`].
    ///
    /// # Errors
    /// [`ZipError::Member`] when the local header is for another member, or size or CRC-32 are not those of the directory.
    pub fn extract(&self, extent: &[u8]) -> Result<Vec<u8>, ZipError> {
        let refuse = |reason: &str| ZipError::member(&self.name, reason);
        let packed = self.packed(extent).map_err(refuse)?;
        let size = usize::try_from(self.size).map_err(|_| refuse("is too large for this machine"))?;
        let content = match self.method {
            Method::Stored => packed.to_vec(),
            Method::Deflate => inflated(packed, size).map_err(refuse)?,
        };
        if content.len() > size {
            return Err(refuse(&format!("has more than the {size} bytes that the directory says")));
        }
        if content.len() < size {
            return Err(refuse(&format!("has {} bytes, not the {size} that the directory says", content.len())));
        }
        let mut crc = Crc::new();
        crc.update(&content);
        if crc.sum() != self.crc32 {
            return Err(refuse(&format!("has CRC-32 {:08x}, but {:08x} in the directory", crc.sum(), self.crc32)));
        }
        Ok(content)
    }

    /// The bytes of the member as they are kept, after its local header.
    fn packed<'a>(&self, extent: &'a [u8]) -> Result<&'a [u8], &'static str> {
        const CUT_OFF: &str = "is cut off";
        if u32_at(extent, 0).ok_or(CUT_OFF)? != LOCAL_SIGNATURE {
            return Err("has no header where the directory says");
        }
        let (name_len, extra_len) = (u16_at(extent, 26).ok_or(CUT_OFF)?, u16_at(extent, 28).ok_or(CUT_OFF)?);
        let header = usize::try_from(LOCAL_LEN).map_err(|_| CUT_OFF)?;
        if slice_at(extent, header, name_len.into()).ok_or(CUT_OFF)? != self.name.as_bytes() {
            return Err("has another name in its own header");
        }
        let method = match self.method {
            Method::Stored => 0,
            Method::Deflate => 8,
        };
        if u16_at(extent, 8) != Some(method) {
            return Err("has another compression in its own header");
        }
        let at = header + usize::from(name_len) + usize::from(extra_len);
        usize::try_from(self.compressed).ok().and_then(|len| slice_at(extent, at, len)).ok_or(CUT_OFF)
    }
}

/// Inflates `packed`, which should give `size` bytes; never makes more than one byte beyond them.
fn inflated(packed: &[u8], size: usize) -> Result<Vec<u8>, &'static str> {
    let mut decoder = DeflateDecoder::new(packed);
    // The size is only a claim: memory grows with what really comes.
    let mut content = Vec::with_capacity(size.min(1 << 20));
    let limit = (size as u64).saturating_add(1);
    decoder.by_ref().take(limit).read_to_end(&mut content).map_err(|_| "cannot be inflated")?;
    if decoder.total_in() != packed.len() as u64 && content.len() <= size {
        return Err("has bytes after its end");
    }
    Ok(content)
}
