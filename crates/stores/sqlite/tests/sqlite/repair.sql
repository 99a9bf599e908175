DELETE FROM claims WHERE lock = 'bad';
