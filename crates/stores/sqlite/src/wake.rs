//! Telling other processes: a byte written into a small file, and inotify on the directory of those files.
//!
//! Surprise: the byte is written after COMMIT and never seen by SQLite. Its own WAL file would fire too early, when
//! the commit cannot be read yet. All of this is a hint: if it fails, waiters look by themselves every now and then.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::hub::BUCKETS;
use crate::place::{Access, Place};

/// The wake files, as the one thread that writes pokes them.
#[derive(Debug)]
pub(crate) struct Pokes {
    directory: PathBuf,
    access: Access,
    files: Vec<Option<File>>,
}

impl Pokes {
    pub(crate) fn new(place: &Place) -> Self {
        let files = (0..BUCKETS).map(|_| None).collect();
        Self { directory: place.wake_directory(), access: place.access, files }
    }

    /// Tells whoever listens to the bucket.
    pub(crate) fn poke(&mut self, bucket: usize) {
        if let Err(error) = self.try_poke(bucket) {
            tracing::debug!(%error, "no wake-up could be sent; waiters will find out by themselves");
        }
    }

    fn try_poke(&mut self, bucket: usize) -> io::Result<()> {
        // A file that was removed under us would wake nobody.
        let lives = |file: &File| file.metadata().is_ok_and(|found| found.nlink() > 0);
        if !self.files[bucket].as_ref().is_some_and(lives) {
            self.files[bucket] = Some(self.open(bucket)?);
        }
        match &self.files[bucket] {
            Some(file) => file.write_all_at(b".", 0),
            None => Ok(()),
        }
    }

    fn open(&self, bucket: usize) -> io::Result<File> {
        let path = self.directory.join(file_name(bucket));
        let mode = self.access.file_mode();
        let open = |new: bool| OpenOptions::new().write(true).create_new(new).mode(mode).open(&path);
        if let Ok(file) = open(false) {
            return Ok(file);
        }
        make_directory(&self.directory, self.access)?;
        match open(true) {
            Ok(file) => {
                self.access.apply(&path, mode)?;
                Ok(file)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open(false),
            Err(error) => Err(error),
        }
    }
}

/// Makes the directory of the wake files, if it is missing.
fn make_directory(path: &Path, access: Access) -> io::Result<()> {
    let mode = access.directory_mode();
    match fs::DirBuilder::new().mode(mode).create(path) {
        Ok(()) => access.apply(path, mode),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn file_name(bucket: usize) -> String {
    format!("{bucket:02}")
}

#[cfg(target_os = "linux")]
fn bucket_named(name: &[u8]) -> Option<usize> {
    std::str::from_utf8(name).ok()?.parse().ok().filter(|bucket| *bucket < BUCKETS)
}

#[cfg(target_os = "linux")]
pub(crate) use ear::Ear;

#[cfg(not(target_os = "linux"))]
pub(crate) use no_ear::Ear;

#[cfg(target_os = "linux")]
mod ear {
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::sync::{Arc, Mutex, PoisonError};
    use std::thread::JoinHandle;

    use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;

    use super::{bucket_named, make_directory};
    use crate::hub::BUCKETS;
    use crate::place::{FileId, Place, file_id};

    /// One inotify instance and the thread that reads it, made when somebody first waits: systems allow only so
    /// many instances, and most programs never wait.
    #[derive(Debug)]
    pub(crate) struct Ear {
        place: Place,
        events: Arc<OwnedFd>,
        /// Which directory is watched.
        watched: Mutex<FileId>,
        stop: Arc<OwnedFd>,
        thread: Mutex<Option<JoinHandle<()>>>,
    }

    impl Ear {
        /// From here on, `heard` is called with every bucket that is poked. It answers whether to go on.
        pub(crate) fn listen(place: &Place, heard: impl FnMut(usize) -> bool + Send + 'static) -> io::Result<Self> {
            let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
            let events = Arc::new(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?);
            let watched = Mutex::new(watch(&events, place)?);
            let (listened, stopped) = (Arc::clone(&events), Arc::clone(&stop));
            let thread = std::thread::Builder::new().name("lockkeeper-wake".to_owned()).spawn(move || {
                if let Err(error) = read(&listened, &stopped, heard) {
                    tracing::debug!(%error, "wake-ups are no longer heard; waiters will find out by themselves");
                }
            })?;
            let place = place.clone();
            Ok(Self { place, events, watched, stop, thread: Mutex::new(Some(thread)) })
        }

        /// Are wake-ups heard? If the directory was removed or replaced, listens to the one that is there now:
        /// the kernel does not tell of that while anybody has a file of the old one open.
        pub(crate) fn hears(&self) -> bool {
            let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
            let listens = thread.as_ref().is_some_and(|thread| !thread.is_finished());
            drop(thread);
            listens && self.watches()
        }

        fn watches(&self) -> bool {
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            if file_id(&self.place.wake_directory()).is_ok_and(|found| found == *watched) {
                return true;
            }
            let again = watch(&self.events, &self.place);
            again.map(|found| *watched = found).is_ok()
        }

        /// Ends the thread.
        pub(crate) fn stop(&self) {
            rustix::io::write(&self.stop, &1_u64.to_ne_bytes()).ok();
        }

        /// Waits until it has ended, which takes no time.
        pub(crate) fn join(&self) {
            self.stop();
            let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(thread) = thread {
                thread.join().ok();
            }
        }
    }

    impl Drop for Ear {
        fn drop(&mut self) {
            self.stop();
        }
    }

    fn watch(events: &OwnedFd, place: &Place) -> io::Result<FileId> {
        let directory = place.wake_directory();
        make_directory(&directory, place.access)?;
        // Looked at before it is watched: if it is replaced in between, the next look tells.
        let found = file_id(&directory)?;
        inotify::add_watch(events, &directory, WatchFlags::MODIFY | WatchFlags::ONLYDIR)?;
        Ok(found)
    }

    fn read(events: &OwnedFd, stop: &OwnedFd, mut heard: impl FnMut(usize) -> bool) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(events, &mut buffer);
        loop {
            let mut ready = [PollFd::new(events, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            match poll(&mut ready, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if !ready[1].revents().is_empty() {
                return Ok(());
            }
            loop {
                let (bucket, flags) = match reader.next() {
                    Ok(event) => (event.file_name().and_then(|name| bucket_named(name.to_bytes())), event.events()),
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(error.into()),
                };
                // After an overflow anything may have happened.
                let all = flags.contains(ReadFlags::QUEUE_OVERFLOW);
                let some = if all { 0..BUCKETS } else { bucket.map_or(0..0, |bucket| bucket..bucket + 1) };
                for bucket in some {
                    if !heard(bucket) {
                        return Ok(());
                    }
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod no_ear {
    use std::io;

    use crate::place::Place;

    /// There is no inotify here: waiters look by themselves.
    #[derive(Debug)]
    pub(crate) struct Ear;

    impl Ear {
        pub(crate) fn listen(_place: &Place, _heard: impl FnMut(usize) -> bool + Send + 'static) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn hears(&self) -> bool {
            false
        }

        pub(crate) fn stop(&self) {}

        pub(crate) fn join(&self) {}
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    fn listening(place: &Place) -> (Ear, mpsc::Receiver<usize>) {
        let (tell, told) = mpsc::channel();
        (Ear::listen(place, move |bucket| tell.send(bucket).is_ok()).unwrap(), told)
    }

    #[test]
    fn pokes_are_heard_by_all_until_they_stop() {
        let root = tempfile::tempdir().unwrap();
        let place = Place::prepare(&root.path().join("locks.db")).unwrap();
        let ((one, heard_one), (two, heard_two)) = (listening(&place), listening(&place));
        let mut pokes = Pokes::new(&place);
        for bucket in [0, 63, 7] {
            pokes.poke(bucket);
            assert_eq!(heard_one.recv_timeout(LONG).unwrap(), bucket);
            assert_eq!(heard_two.recv_timeout(LONG).unwrap(), bucket);
        }
        one.join();
        assert!(!one.hears() && two.hears());
        drop(two);
        // The thread ends, and with it the closure that tells.
        assert_eq!(heard_two.recv_timeout(LONG), Err(mpsc::RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_removed_directory_is_made_again() {
        let root = tempfile::tempdir().unwrap();
        let place = Place::prepare(&root.path().join("locks.db")).unwrap();
        let (ear, heard) = listening(&place);
        let mut pokes = Pokes::new(&place);
        for _ in 0..3 {
            assert!(ear.hears());
            pokes.poke(3);
            assert_eq!(heard.recv_timeout(LONG).unwrap(), 3);
            fs::remove_dir_all(place.wake_directory()).unwrap();
        }
    }

    #[test]
    fn other_files_there_are_nothing_to_us() {
        for name in ["64", "-1", "", "x", "0x1"] {
            assert_eq!(bucket_named(name.as_bytes()), None, "{name}");
        }
        assert_eq!(bucket_named(b"07"), Some(7));
    }
}
