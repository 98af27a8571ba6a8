//! Dry runs of real releases: what `nvcc --dryrun` said to a call with placeholders, for `8.0`, `9.0a` and `12.0+PTX`.

use super::parse::{File, Parts, Word, parse};

const RELEASES: [(&str, &str); 3] = [
    ("13.0", include_str!("../../tests/dry-runs/13.0.txt")),
    ("13.2", include_str!("../../tests/dry-runs/13.2.txt")),
    ("13.5", include_str!("../../tests/dry-runs/13.5.txt")),
];

/// Files among the words of a command.
fn files(words: &[Word]) -> Vec<File> {
    let file = |word: &Word| match word {
        Word::Text(_) => None,
        Word::File(file) | Word::Joined(_, file) => Some(file.clone()),
    };
    words.iter().filter_map(file).collect()
}

fn texts(words: &[Word]) -> Vec<&str> {
    words.iter().filter_map(|word| if let Word::Text(text) = word { Some(text.as_str()) } else { None }).collect()
}

fn refused(text: &str) -> Option<String> {
    parse(text).err().map(|why| why.to_string())
}

#[test]
fn the_parts_of_each_release_are_the_same() {
    for (release, text) in RELEASES {
        let Parts { preprocess, cudafe, passes, fatbinary, host, stub_name, fatbin_name, cicc_dir, libdevice, programs } =
            parse(text).unwrap();
        let archs: Vec<_> = passes.iter().map(|pass| (pass.arch.as_str(), pass.cubins[0].0.as_str(), pass.keeps_ptx)).collect();
        let expected = [("compute_80", "sm_80", false), ("compute_90a", "sm_90a", false), ("compute_120", "sm_120", true)];
        assert_eq!(archs, expected, "{release}");
        assert_eq!(files(&preprocess), [File::Preprocessed], "{release}");
        assert_eq!(files(&cudafe), [File::HostCode, File::ModuleId, File::Preprocessed], "{release}");
        for (at, pass) in passes.iter().enumerate() {
            assert_eq!(files(&pass.preprocess), [File::Preprocessed], "{release}");
            let all = [File::ModuleId, File::Unused("c"), File::Stub, File::Unused("gpu"), File::Preprocessed, File::Ptx(at)];
            assert_eq!(files(&pass.cicc), all, "{release}");
            assert_eq!(files(&pass.cubins[0].1), [File::Ptx(at), File::Cubin(at, 0)], "{release}");
        }
        let images = [File::Fatbin, File::Cubin(0, 0), File::Cubin(1, 0), File::Cubin(2, 0), File::Ptx(2)];
        assert_eq!(files(&fatbinary), images, "{release}");
        assert_eq!(files(&host), [File::HostCode, File::Object], "{release}");
        assert_eq!((stub_name.as_str(), fatbin_name.as_str()), ("unit.o.compute_120.cudafe1.stub.c", "unit.o.fatbin.c"), "{release}");
        assert_eq!(cicc_dir, "/kiln-toolkit-/bin/../nvvm/bin", "{release}");
        assert_eq!((libdevice.as_str(), programs.as_str()), ("/kiln-toolkit-/bin/../nvvm/libdevice", "/kiln-toolkit-/bin"), "{release}");
        // What an option says stays with it, whatever it is.
        assert!(texts(&preprocess).windows(2).any(|pair| pair == ["-D", "WORDS=\"a b\""]), "{release}");
        assert!(texts(&passes[1].preprocess).contains(&"-D__CUDA_ARCH_FEAT_SM90_ALL"), "{release}");
        assert!(texts(&passes[1].cicc).windows(2).any(|pair| pair == ["-arch", "compute_90a"]), "{release}");
        assert!(texts(&fatbinary).contains(&"--ident=./kiln-source-.cu"), "{release}");
    }
}

/// Whatever is taken away, doubled or added: it is noticed, or it is nothing that hands on a file.
#[test]
fn what_differs_is_not_understood() {
    for (release, text) in RELEASES {
        let lines: Vec<&str> = text.lines().collect();
        let is_command = |line: &str| !line.starts_with("#$ rm ") && line.contains("/kiln-out-/");
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| is_command(line)) {
            let with = |replaced: &[&str]| [&lines[..at], replaced, &lines[at + 1..]].concat().join("\n");
            assert!(refused(&with(&[])).is_some(), "{release}, without `{line}`");
            assert!(refused(&with(&[line, line])).is_some(), "{release}, twice `{line}`");
            for more in ["\"/kiln-out-/unit.o.new\"", "--new_file_name \"/kiln-out-/unit.o.module_id\"", "--new=unit.o.x", "; true"] {
                assert!(refused(&with(&[&format!("{line} {more}")])).is_some(), "{release}, `{more}` behind `{line}`");
            }
            assert_eq!(
                refused(&with(&[&format!("{line} --new-option=3")])),
                None,
                "{release}: an option that names no file is its program's own"
            );
        }
        for more in
            ["#$ nvlink --arch=sm_80 x", "#$ NEW_VARIABLE=1", "nvcc warning : something", "#$ rm /home/x", "#$ \"$CICC_PATH/tileiras\" x"]
        {
            assert!(refused(&format!("{text}{more}\n")).is_some(), "{release}, `{more}`");
        }
    }
    assert!(refused("").is_some());
}

#[test]
fn the_samples_are_of_no_machine() {
    for (release, text) in RELEASES {
        for word in ["/usr", "/home", "/root", "/tmp", "g++"] {
            assert!(!text.contains(word), "{release}: {word}");
        }
    }
}
