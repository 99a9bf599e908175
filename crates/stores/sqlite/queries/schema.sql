-- Version 1 of the file. All times are nanoseconds of the clock that `epoch` names, all lengths nanoseconds.

-- The last number handed out, for claims and for versions of cells. One row.
CREATE TABLE meta (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
) STRICT;
INSERT INTO meta (one, last) VALUES (1, 0);

-- The lines: one row per claim, in order. A lock that nobody asks for has no row.
CREATE TABLE claims (
    lock       TEXT    NOT NULL,
    ord        INTEGER NOT NULL,
    id         BLOB    NOT NULL,
    owner      BLOB    NOT NULL,
    host       TEXT    NOT NULL,
    pid        INTEGER NOT NULL,
    label      TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    weight     INTEGER NOT NULL,
    capacity   INTEGER NOT NULL,
    entered    INTEGER NOT NULL,
    held_since INTEGER,
    lease      INTEGER NOT NULL, -- how far ahead `expires` was when it was written
    expires    INTEGER NOT NULL,
    epoch      INTEGER NOT NULL,
    left       INTEGER NOT NULL,
    note       BLOB    NOT NULL,
    PRIMARY KEY (lock, ord)
) STRICT, WITHOUT ROWID;

-- Claims of another epoch, as first seen unchanged from `epoch`: such a claim ends there at `ends`.
CREATE TABLE sightings (
    lock          TEXT    NOT NULL,
    ord           INTEGER NOT NULL,
    epoch         INTEGER NOT NULL,
    claim_expires INTEGER NOT NULL,
    claim_epoch   INTEGER NOT NULL,
    ends          INTEGER NOT NULL,
    PRIMARY KEY (lock, ord, epoch)
) STRICT, WITHOUT ROWID;

-- Locks whose every change somebody wants to hear of.
CREATE TABLE observers (
    lock  TEXT    NOT NULL,
    epoch INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (lock, epoch)
) STRICT, WITHOUT ROWID;

-- With row ids, since a value may be much larger than a page.
CREATE TABLE cells (
    name       TEXT    NOT NULL PRIMARY KEY,
    version    INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    bytes      BLOB,
    number     INTEGER,
    span       INTEGER,
    read_mark  INTEGER NOT NULL,
    write_mark INTEGER NOT NULL,
    touched    INTEGER NOT NULL,
    keep       INTEGER,
    epoch      INTEGER NOT NULL,
    ends       INTEGER
) STRICT;
CREATE INDEX cells_ends ON cells (epoch, ends) WHERE ends IS NOT NULL;
