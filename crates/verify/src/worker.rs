//! A worker process: takes locks, changes registers, writes down what it saw.

use lockkeeper_rig::Trouble;

/// Works as the arguments say until its plan is over. `args` are those after the program's own first ones.
pub async fn work(_args: &[String]) -> Result<(), Trouble> {
    Err(Trouble::new("not there yet"))
}
