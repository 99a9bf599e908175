UPDATE claims SET lock = 'not a name';
