CREATE TRIGGER poison BEFORE INSERT ON claims WHEN new.lock = 'poison' BEGIN SELECT RAISE(ABORT, 'poisoned'); END;
