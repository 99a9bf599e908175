//! The program as its users meet it: real processes, a real file, a real terminal.
//!
//! One binary with a module per topic. Every wait is for an event, with a limit; everything that is started is
//! ended by its process id, also when a test fails.

mod cli {
    mod basics;
    mod configuring;
    mod crash;
    mod doctoring;
    mod doing_once;
    mod electing;
    mod examples;
    mod exclusion;
    mod following;
    mod looking;
    mod manual;
    mod nesting;
    mod pty;
    mod secrets;
    mod servers;
    mod sharing;
    mod support;
    mod values;
    mod verifying;
    mod waiting;
}
