-- All nodes that a loop goes on at, where these are more than one (../schema/loops.sql). View loops has them at its end.
ALTER TABLE evictrail.loops
    ADD COLUMN nodes jsonb;
