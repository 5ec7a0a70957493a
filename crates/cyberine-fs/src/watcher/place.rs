//! What a watcher asks of the system about a directory.

use std::path::Path;

use crate::dir::Identity;

/// Which directory has the path; `None` where none has.
pub(super) fn identity(directory: &Path) -> Option<Identity> {
    std::fs::metadata(directory).ok().map(|metadata| Identity::of(&metadata))
}

/// Whether the file system is known to tell of every change: a local one. What another machine
/// changes in a shared one is not told.
#[cfg(target_os = "linux")]
pub(super) fn tells_all(directory: &Path) -> bool {
    // ext2 to ext4, XFS, Btrfs, tmpfs, ramfs, overlayfs, ZFS, F2FS, bcachefs.
    const LOCAL: [u32; 9] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0x8584_58f6,
        0x794c_7630,
        0x2fc1_2fc1,
        0xf2f5_2010,
        0xca45_1a4e,
    ];
    let kind = rustix::fs::statfs(directory).ok().and_then(|found| u32::try_from(found.f_type).ok());
    kind.is_some_and(|kind| LOCAL.contains(&kind))
}

/// Whether the file system is known to tell of every change.
#[cfg(not(target_os = "linux"))]
pub(super) fn tells_all(_: &Path) -> bool {
    false
}
