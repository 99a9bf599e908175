-- A claim of `poison` makes the COMMIT fail, and nothing before it.
CREATE TABLE parents (id INTEGER PRIMARY KEY);
CREATE TABLE orphans (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED);
CREATE TRIGGER poison AFTER INSERT ON claims WHEN new.lock = 'poison' BEGIN INSERT INTO orphans VALUES (1); END;
