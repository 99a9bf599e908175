CREATE TABLE diary (day TEXT, entry TEXT); INSERT INTO diary VALUES ('monday', 'rain');
