//! Where the file lives: its directories, its permissions, and the file systems it must not be on.
//!
//! Surprise: the database is never opened here, not even to create it. POSIX drops all of a process's locks on a
//! file when *any* descriptor of it is closed, so an innocent open-and-close would unlock a second store of the
//! same process in the middle of its transaction.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use lockkeeper_core::{Error, ErrorKind, Result};

use crate::trouble::{explain_io, foreign};

/// Who may use the file: its owner, or also the group of a directory that the group may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    group: Option<u32>,
}

impl Access {
    /// What the directory says. One that the whole world may write (`/tmp`) says nothing about the group.
    fn of(directory: &fs::Metadata) -> Self {
        let mode = directory.mode();
        Self { group: (mode & 0o020 != 0 && mode & 0o002 == 0).then_some(directory.gid()) }
    }

    /// The mode of files.
    pub(crate) fn file_mode(self) -> u32 {
        if self.group.is_some() { 0o660 } else { 0o600 }
    }

    /// The mode of directories.
    pub(crate) fn directory_mode(self) -> u32 {
        if self.group.is_some() { 0o770 } else { 0o700 }
    }

    /// Gives what was just made its mode, whatever the umask, and the group of its directory where we may.
    pub(crate) fn apply(self, path: &Path, mode: u32) -> io::Result<()> {
        if let Some(group) = self.group {
            // Not being allowed to is fine: then the group is our own.
            std::os::unix::fs::chown(path, None, Some(group)).ok();
        }
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }
}

/// A file that exists and may be used.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The database.
    pub(crate) path: PathBuf,
    /// Who may use it.
    pub(crate) access: Access,
}

/// The smallest page that SQLite knows, in bytes.
const PAGE_MIN: u64 = 512;

/// What SQLite keeps beside the file.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// Device and inode: is it still the same file?
pub(crate) type FileId = (u64, u64);

impl Place {
    /// Makes the directories and an empty file where they are missing, and refuses unsafe file systems.
    pub(crate) fn prepare(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| explain_io(error, "cannot use", path))?;
        let Some(parent) = path.parent().filter(|_| path.file_name().is_some()) else {
            return Err(Error::invalid("path", format!("{} names no file", path.display())));
        };
        // Directories that we make are for this user alone.
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(parent);
        made.map_err(|error| explain_io(error, "cannot make the directory", parent))?;
        refuse_unsafe(parent)?;
        let directory = fs::metadata(parent).map_err(|error| explain_io(error, "cannot look at", parent))?;
        let place = Self { access: Access::of(&directory), path };
        place.create()?;
        refuse_unsafe(&place.path)?;
        let found = fs::metadata(&place.path).map_err(|error| explain_io(error, "cannot look at", &place.path))?;
        if !found.is_file() {
            return Err(Error::invalid("path", format!("{} is not a file", place.path.display()))
                .with_hint("use the path of a file in that directory, for example `locks.db` there"));
        }
        // SQLite takes a file of one byte for an empty one and would write over it. No database is below a page.
        if (1..PAGE_MIN).contains(&found.len()) {
            return Err(foreign("it is too short for a database"));
        }
        Ok(place)
    }

    fn create(&self) -> Result<()> {
        if fs::symlink_metadata(&self.path).is_ok() {
            return Ok(());
        }
        let mode = self.access.file_mode();
        match make_file(&self.path, mode) {
            Ok(()) => self.access.apply(&self.path, mode),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
        .map_err(|error| explain_io(error, "cannot create", &self.path))
    }

    /// Which file stands at the path now.
    pub(crate) fn file_id(&self) -> io::Result<FileId> {
        file_id(&self.path)
    }

    /// Gives the files that SQLite made beside the database the group of the database, as only root's SQLite does.
    /// Another user may come in between and be denied; a directory with the set-group-id bit spares that.
    pub(crate) fn share_companions(&self) {
        if let Some(group) = self.access.group {
            for suffix in COMPANIONS {
                std::os::unix::fs::chown(beside(&self.path, suffix), None, Some(group)).ok();
            }
        }
    }

    /// The directory of the wake files.
    pub(crate) fn wake_directory(&self) -> PathBuf {
        beside(&self.path, "-wake")
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Which file or directory stands at the path now.
pub(crate) fn file_id(path: &Path) -> io::Result<FileId> {
    let found = fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Makes an empty file without opening it.
#[cfg(target_os = "linux")]
fn make_file(path: &Path, mode: u32) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    Ok(mknodat(CWD, path, FileType::RegularFile, Mode::from_raw_mode(mode), 0)?)
}

/// Elsewhere `mknod` is for root; the file is new, so that nobody has locks on it yet.
#[cfg(not(target_os = "linux"))]
fn make_file(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map(drop)
}

/// May we write the file, its directory and its companions, as far as their permissions tell?
pub(crate) fn may_write(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    let files = Access::READ_OK | Access::WRITE_OK;
    let directory = access(path.parent().unwrap_or(path), files | Access::EXEC_OK);
    let refused = |path: &Path| access(path, files).is_err_and(|error| error != rustix::io::Errno::NOENT);
    directory.is_ok() && !refused(path) && !COMPANIONS.iter().any(|suffix| refused(&beside(path, suffix)))
}

/// File systems on which memory mapped or locked by two machines, or by host and guest, is not shared.
#[cfg(any(target_os = "linux", test))]
const UNSAFE: &[(u64, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x00c3_6400, "Ceph"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE or virtiofs"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x564c, "NCP"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x1983_0326, "BeeGFS"),
    (0x2003_0528, "OrangeFS"),
    (0x786f_4256, "vboxsf"),
    (0xbacb_acbc, "vmhgfs"),
];

#[cfg(any(target_os = "linux", test))]
fn unsafe_name(magic: u64) -> Option<&'static str> {
    UNSAFE.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
}

/// What a file is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileSystem {
    pub(crate) name: String,
    /// Is it gone when the machine restarts?
    pub(crate) in_memory: bool,
}

/// Common ones by name; the others are shown by number.
#[cfg(any(target_os = "linux", test))]
const LOCAL: &[(u64, &str)] = &[
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0x794c_7630, "overlay"),
    (TMPFS, "tmpfs"),
    (RAMFS, "ramfs"),
];
#[cfg(any(target_os = "linux", test))]
const TMPFS: u64 = 0x0102_1994;
#[cfg(any(target_os = "linux", test))]
const RAMFS: u64 = 0x8584_58f6;

#[cfg(any(target_os = "linux", test))]
fn named(magic: u64) -> FileSystem {
    let known = LOCAL.iter().find(|(known, _)| *known == magic).map(|(_, name)| (*name).to_owned());
    FileSystem { name: known.unwrap_or_else(|| format!("{magic:#x}")), in_memory: matches!(magic, TMPFS | RAMFS) }
}

/// What a file is on, if that can be seen.
#[cfg(target_os = "linux")]
pub(crate) fn file_system(path: &Path) -> Option<FileSystem> {
    magic_of(path).ok().map(named)
}

/// What a file is on, if that can be seen.
#[cfg(not(target_os = "linux"))]
pub(crate) fn file_system(_path: &Path) -> Option<FileSystem> {
    None
}

/// How much room there is beside a file, for us.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(target_os = "linux")]
fn magic_of(path: &Path) -> io::Result<u64> {
    let found = rustix::fs::statfs(path)?;
    // The type is a signed or a 32-bit number on some machines; the magic numbers all fit 32 bits.
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation, clippy::unnecessary_cast)]
    Ok(u64::from(found.f_type as u32))
}

#[cfg(target_os = "linux")]
fn refuse_unsafe(path: &Path) -> Result<()> {
    let magic = magic_of(path).map_err(|error| explain_io(error, "cannot look at", path))?;
    match unsafe_name(magic) {
        None => Ok(()),
        Some(name) => Err(Error::new(
            ErrorKind::Unsupported,
            format!("{} is on {name}, where SQLite cannot keep processes apart", path.display()),
        )
        .with_hint("use a path on a local disk, for example `--store sqlite:/var/tmp/locks.db`")),
    }
}

#[cfg(not(target_os = "linux"))]
fn refuse_unsafe(_path: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_file_systems_are_refused_and_local_ones_are_not() {
        for magic in [0x6969, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x6573_5546, 0x00c3_6400] {
            assert!(unsafe_name(magic).is_some(), "{magic:x}");
        }
        for (magic, name) in LOCAL {
            assert_eq!(unsafe_name(*magic), None, "{name}");
            assert_eq!(named(*magic).in_memory, matches!(*name, "tmpfs" | "ramfs"), "{name}");
        }
        assert_eq!(named(0x1234), FileSystem { name: "0x1234".to_owned(), in_memory: false });
    }

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn files_are_private_unless_the_directory_is_the_groups() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/locks.db");
        Place::prepare(&deep).unwrap();
        assert_eq!((mode_of(&deep), mode_of(deep.parent().unwrap())), (0o600, 0o700));
        for (directory, file) in [(0o770, 0o660), (0o2775, 0o660), (0o1777, 0o600), (0o750, 0o600)] {
            let parent = root.path().join(format!("{directory:o}"));
            fs::create_dir(&parent).unwrap();
            fs::set_permissions(&parent, fs::Permissions::from_mode(directory)).unwrap();
            Place::prepare(&parent.join("locks.db")).unwrap();
            assert_eq!(mode_of(&parent.join("locks.db")), file, "{directory:o}");
        }
    }

    #[test]
    fn what_is_there_is_left_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("locks.db");
        fs::write(&path, [7; 1_000]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        Place::prepare(&path).unwrap();
        assert_eq!((mode_of(&path), fs::read(&path).unwrap()), (0o640, vec![7; 1_000]));
        let error = Place::prepare(root.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(Place::prepare(&path.join("below")).unwrap_err().kind(), ErrorKind::Invalid);
    }
}
