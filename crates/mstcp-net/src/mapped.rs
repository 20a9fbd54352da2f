//! A part of a file as memory that the kernel sends from, without a copy.

use rustix::io::Errno;
use std::os::fd::RawFd;

/// Pages of a file, read only. The file must not be cut short while they are used.
pub struct MappedFile {
    start: *mut libc::c_void,
    mapped_bytes: usize,
    skipped_bytes: usize,
}

// SAFETY: the pages are only read, and stay until they are dropped, on whichever thread that is.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Map `length` bytes, 1 at least, from `offset` on; they must be within the file. The error is an errno.
    pub fn new(file: RawFd, offset: u64, length: usize) -> Result<Self, Errno> {
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as u64;
        let skipped_bytes = (offset % page) as usize;
        let mapped_bytes = skipped_bytes + length;
        let from =
            libc::off_t::try_from(offset - skipped_bytes as u64).map_err(|_| Errno::OVERFLOW)?;
        let (read, private) = (libc::PROT_READ, libc::MAP_PRIVATE);
        // SAFETY: a new mapping at a place that the system chooses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped_bytes,
                read,
                private,
                file,
                from,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(crate::sys::last_errno());
        }
        Ok(Self {
            start,
            mapped_bytes,
            skipped_bytes,
        })
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the mapping is as long as said and lives as long as this.
        unsafe {
            let start = self.start.cast::<u8>().add(self.skipped_bytes);
            std::slice::from_raw_parts(start, self.mapped_bytes - self.skipped_bytes)
        }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone.
        unsafe { libc::munmap(self.start, self.mapped_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    use super::MappedFile;

    #[test]
    fn any_part_of_a_file_is_seen() {
        let path = std::env::temp_dir().join(format!("mstcp-net-mapped-{}", std::process::id()));
        let bytes: Vec<u8> = (0..20_000_u32).map(|at| at as u8).collect();
        let mut file = std::fs::File::options();
        let mut file = file
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(&bytes).unwrap();
        for (offset, length) in [(0, 20_000), (1, 1), (4095, 2), (4096, 4096), (19_999, 1)] {
            let mapped = MappedFile::new(file.as_raw_fd(), offset, length).unwrap();
            let from = offset as usize;
            assert_eq!(mapped.as_ref(), &bytes[from..from + length]);
        }
    }

    #[test]
    fn what_is_no_file_is_an_error() {
        assert_eq!(
            MappedFile::new(-1, 0, 1).err(),
            Some(rustix::io::Errno::BADF)
        );
    }
}
