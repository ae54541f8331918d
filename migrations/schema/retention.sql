-- How far facts are dropped, by months. Of what is dropped, that stays on which what came after rests, in the partition
-- events_kept; derived rows about what was over by then stay as they are (docs/adr/0020). There is one row.
CREATE TABLE evictrail.retention (
    only_row     boolean     NOT NULL DEFAULT true PRIMARY KEY CHECK (only_row),
    facts_from   timestamptz, -- the months before were dropped; NULL: none were. Each cluster has its own (clusters.sql)
    dropping     timestamptz, -- up to where facts are being dropped; NULL: none are
    complete     boolean     NOT NULL DEFAULT false, -- everything that is to be kept of them is in events_next
    done_cluster text        NOT NULL DEFAULT '', -- else that of the subjects up to this one is
    done_subject text        NOT NULL DEFAULT '',
    name_key     text, -- with which names that are erased are kept apart
    name_month   timestamptz -- in which it is used; there is another one in the next
);
INSERT INTO evictrail.retention DEFAULT VALUES;
