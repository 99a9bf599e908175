//! The one thread that owns the connection. It does what is queued, many calls to a transaction.
//!
//! A commit waits for the disk, and while it does, calls pile up; the next transaction takes them all. Answers are
//! given after the commit, and after other processes have been told. Surprise: when one call makes the transaction
//! fail, all are run again, each alone, so that the others do not suffer. Not so after a failed COMMIT: whether that
//! one took effect is not known, and adding twice is worse than saying so.

use std::path::PathBuf;
use std::sync::Arc;

use lockkeeper_core::{Effect, Error, Result};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::Sync;
use crate::hub::{BUCKETS, bucket_of};
use crate::place::{FileId, Place};
use crate::queue::{Pile, Queue, Task};
use crate::schema;
use crate::trouble::{Trouble, closed, explain, explain_io};
use crate::wake::Pokes;
use crate::work::{Answer, Batch, Op, Setting, Told};

/// One transaction in so many also tidies up.
const TIDY_EVERY: u32 = 256;

/// The owner of the connection.
pub(crate) struct Scribe {
    queue: Arc<Queue>,
    setting: Setting,
    place: Place,
    sync: Sync,
    connection: Connection,
    file: FileId,
    pokes: Pokes,
}

/// How a transaction failed.
enum Failure {
    /// It could not begin: nobody's fault, and trying again one by one would only take longer.
    Begin(rusqlite::Error),
    /// A call in it failed; nothing has happened.
    Inside(Trouble),
    /// What became of it is not known.
    Commit(rusqlite::Error),
}

impl Scribe {
    /// Opens the file.
    pub(crate) fn open(path: PathBuf, sync: Sync, queue: Arc<Queue>, setting: Setting) -> Result<Self> {
        let place = Place::prepare(&path)?;
        let connection = schema::open(&place, sync)?;
        place.share_companions();
        let file = place.file_id().map_err(|error| explain_io(error, "cannot look at", &place.path))?;
        let pokes = Pokes::new(&place);
        Ok(Self { queue, setting, place, sync, connection, file, pokes })
    }

    /// Where the file is.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        // Whatever ends this thread, nobody shall wait for it.
        let _last_word = LastWord { queue: Arc::clone(&self.queue), hub: Arc::clone(&self.setting.hub) };
        while let Some(pile) = self.queue.next() {
            self.serve(pile);
        }
    }

    fn serve(&mut self, mut pile: Pile) {
        if let Err(error) = self.keep_to_the_path() {
            return answer_all(pile.tasks, &error);
        }
        let writes = pile.tasks.iter().any(|task| task.op.writes());
        let failure = match self.attempt(&mut pile, writes) {
            Ok(answers) => {
                pile.tasks.into_iter().zip(answers).for_each(|(task, answer)| task.answer(answer));
                if writes && fastrand::u32(..TIDY_EVERY) == 0 {
                    self.alone(Task::quiet(Op::Tidy));
                }
                return;
            }
            Err(failure) => failure,
        };
        match failure {
            Failure::Begin(error) => answer_all(pile.tasks, &self.explained(error, Effect::None)),
            Failure::Commit(error) => answer_all(pile.tasks, &self.explained(error, Effect::Unknown)),
            Failure::Inside(_) => pile.tasks.into_iter().for_each(|task| self.alone(task)),
        }
    }

    /// One task in a transaction of its own.
    fn alone(&mut self, task: Task) {
        let mut writes = task.op.writes();
        let mut pile = Pile::full_of(task);
        loop {
            let result = match self.attempt(&mut pile, writes) {
                Ok(mut answers) => answers.pop().unwrap_or_else(|| Err(Error::bug("a call was not answered"))),
                Err(Failure::Inside(Trouble::MustWrite)) if !writes => {
                    writes = true;
                    continue;
                }
                Err(Failure::Inside(Trouble::MustWrite)) => Err(Error::bug("a writer was told to write")),
                Err(Failure::Inside(Trouble::Known(error))) => Err(error),
                Err(Failure::Begin(error) | Failure::Inside(Trouble::Sql(error))) => {
                    Err(self.explained(error, Effect::None))
                }
                Err(Failure::Commit(error)) => Err(self.explained(error, Effect::Unknown)),
            };
            if let Some(task) = pile.tasks.pop() {
                task.answer(result);
            }
            return;
        }
    }

    /// Runs all tasks, and those that come meanwhile, in one transaction, and tells whom it concerns.
    fn attempt(&mut self, pile: &mut Pile, writes: bool) -> Result<Vec<Result<Answer>>, Failure> {
        let behavior = if writes { TransactionBehavior::Immediate } else { TransactionBehavior::Deferred };
        let transaction = Transaction::new_unchecked(&self.connection, behavior).map_err(Failure::Begin)?;
        let mut batch = Batch::start(&transaction, &self.setting, writes).map_err(Failure::Inside)?;
        let mut answers = Vec::with_capacity(pile.tasks.len());
        loop {
            for task in &pile.tasks[answers.len()..] {
                answers.push(match batch.run(&task.op) {
                    Ok(answer) => Ok(answer),
                    Err(Trouble::Known(error)) => Err(error),
                    Err(trouble) => return Err(Failure::Inside(trouble)),
                });
            }
            // A transaction that only reads ends at once: what comes next may have to write.
            if !writes || !self.queue.more(pile) {
                break;
            }
        }
        let told = batch.finish().map_err(Failure::Inside)?;
        transaction.commit().map_err(Failure::Commit)?;
        self.tell(&told);
        Ok(answers)
    }

    fn tell(&mut self, told: &Told) {
        told.to_ring.iter().for_each(|(waiting, standing)| waiting.ring(standing.clone()));
        let mut buckets = [false; BUCKETS];
        for news in &told.news {
            if self.setting.hub.announce(news) {
                buckets[bucket_of(&news.lock)] = true;
            }
        }
        (0..BUCKETS).filter(|bucket| buckets[*bucket]).for_each(|bucket| self.pokes.poke(bucket));
    }

    /// If the file was removed or replaced, others use another one: so must we, or two would hold at once.
    fn keep_to_the_path(&mut self) -> Result<()> {
        if self.place.file_id().is_ok_and(|id| id == self.file) {
            return Ok(());
        }
        tracing::warn!(path = %self.place.path.display(), "the lock file was replaced; its locks are lost");
        self.place = Place::prepare(&self.place.path)?;
        self.connection = schema::open(&self.place, self.sync)?;
        self.place.share_companions();
        let found = self.place.file_id();
        self.file = found.map_err(|error| explain_io(error, "cannot look at", &self.place.path))?;
        Ok(())
    }

    fn explained(&self, error: rusqlite::Error, effect: Effect) -> Error {
        explain(error, effect, &self.place.path)
    }
}

fn answer_all(tasks: Vec<Task>, error: &Error) {
    tasks.into_iter().for_each(|task| task.answer(Err(error.clone())));
}

/// When the thread ends, even by a panic, callers and waiters are let go.
struct LastWord {
    queue: Arc<Queue>,
    hub: Arc<crate::hub::Hub>,
}

impl Drop for LastWord {
    fn drop(&mut self) {
        self.queue.close();
        while let Some(pile) = self.queue.next() {
            answer_all(pile.tasks, &closed());
        }
        self.hub.close();
    }
}
