-- Clusters, and who records and derives them.
CREATE TABLE evictrail.clusters (
    cluster       text        NOT NULL PRIMARY KEY,
    alive_at      timestamptz NOT NULL, -- everything that was seen up to then is stored; the epoch of Unix: nothing is
    last_event_at timestamptz, -- when the newest event was seen; NULL: there is none
    thresholds    jsonb, -- trail.Thresholds where they are not the default ones
    replayed      boolean     NOT NULL DEFAULT false, -- it was played from a recording
    uid           text, -- of its namespace kube-system, which ties the name to one cluster; NULL: not tied
    epoch         bigint      NOT NULL DEFAULT 0 CHECK (epoch >= 0), -- how often its history began again (docs/adr/0033)
    facts_from      timestamptz, -- before this time only those facts of it are there that were kept; NULL: all are
    thinned_to      text, -- of those of its facts from before that are not kept, these subjects have none left; NULL: none has
    keep_facts      interval, -- as its recorder has it (retention.Policy): 0 is for ever; NULL: none has said
    keep_rows       interval,
    keep_requesters interval
);

-- Who derives a cluster: the holder of the latest term. Each transaction that derives locks this row and compares its
-- own term, so that a replica which has been replaced, and does not know that yet, changes no derived row.
CREATE TABLE evictrail.leaders (
    cluster      text        NOT NULL PRIMARY KEY,
    term         bigint      NOT NULL CHECK (term > 0),
    holder       text        NOT NULL,
    since        timestamptz NOT NULL,
    program      text, -- version of the program that derives, or that derived last of those that say so
    program_term bigint -- term in which that was said: where it is not the latest, a program that does not say so has derived since
);

-- What each replica has been watching without a break, since when and up to when: what one did not see is a gap only if
-- no other saw it.
CREATE TABLE evictrail.watching (
    cluster text        NOT NULL,
    replica text        NOT NULL,
    source  text        NOT NULL, -- such as nodes or audit
    since   timestamptz NOT NULL,
    upto    timestamptz NOT NULL,
    PRIMARY KEY (cluster, replica, source)
);

-- What each replica says of its own recording, every few seconds: anyone who reads the database, also while no replica
-- runs, sees from it whether what is there is complete. A report that is minutes old says that its replica has stopped,
-- or cannot write.
CREATE TABLE evictrail.recorders (
    cluster        text        NOT NULL,
    replica        text        NOT NULL,
    alive_at       timestamptz NOT NULL, -- when it said so
    started_at     timestamptz NOT NULL,
    state          text        NOT NULL CHECK (state IN ('recording', 'degraded', 'derivation_behind', 'no_leader', 'database_read_only', 'not_recording')),
    since          timestamptz NOT NULL, -- in that state
    why            text[]      NOT NULL, -- sentences
    unseen         text[]      NOT NULL, -- sources that it does not see
    leads          boolean     NOT NULL,
    leader_known   boolean     NOT NULL,
    leader_since   timestamptz NOT NULL,
    leader_problem text        NOT NULL,
    derived_at     timestamptz, -- of a leader: when nothing was left to derive; NULL: not yet
    failure        text        NOT NULL, -- empty where there is none
    PRIMARY KEY (cluster, replica)
);

-- How often each replica was notified that what it sent is stored, and up to when it had seen things then. Only a database
-- that lost commits says less than before.
CREATE TABLE evictrail.acknowledged (
    cluster text        NOT NULL,
    replica text        NOT NULL,
    seq     bigint      NOT NULL CHECK (seq > 0),
    at      timestamptz NOT NULL,
    PRIMARY KEY (cluster, replica)
);
