//! The queries, by name. They live as files in `queries/`, so that people can read and run them.

macro_rules! queries {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../queries/", $file, ".sql"));)*
    };
}

queries! {
    SCHEMA = "schema";
    TABLES = "tables";
    START = "start";
    LAST = "last";
    LINE = "line";
    NAMES = "names";
    CLAIM_PUT = "claim_put";
    CLAIM_DROP = "claim_drop";
    SIGHTING = "sighting";
    SIGHTING_PUT = "sighting_put";
    SIGHTING_DROP = "sighting_drop";
    OBSERVER = "observer";
    OBSERVER_UNTIL = "observer_until";
    OBSERVER_PUT = "observer_put";
    CELL = "cell";
    CELL_PUT = "cell_put";
    CELL_DROP = "cell_drop";
    TIDY_LINES = "tidy_lines";
    TIDY_CELLS = "tidy_cells";
    TIDY_CELLS_OF_OTHERS = "tidy_cells_of_others";
    TIDY_OBSERVERS = "tidy_observers";
}
