-- An observer of another epoch may be alive: it then hears by its slow poll until it registers again.
DELETE FROM observers WHERE epoch <> ?1 OR until <= ?2;
