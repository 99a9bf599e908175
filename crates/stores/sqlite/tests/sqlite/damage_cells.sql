UPDATE cells SET kind = 'bogus';
UPDATE cells SET bytes = NULL;
UPDATE cells SET kind = 'number';
UPDATE cells SET kind = 'window', number = -1, span = 0;
UPDATE cells SET kind = 'gcra', span = -1;
UPDATE cells SET version = -1;
UPDATE cells SET touched = -1;
UPDATE cells SET keep = -1;
