-- Digests of the facts of each day, as a chain: what was recorded is not changed afterwards without that showing (store/evidence).
-- A link covers the facts of a cluster that were stored after those of the links before, up to the end of a day. Facts are
-- dropped by the month in which they happened, so those of one day have a link for each such month; names are erased in facts,
-- so what may hold one has a digest of its own, with a salt that is erased together with the first of them. Rows are only inserted.
CREATE TABLE evictrail.evidence (
    cluster      text        NOT NULL,
    day          date        NOT NULL, -- in UTC, of the first of the facts that was stored
    month        date        NOT NULL, -- in UTC, in which these facts happened
    after_seq    bigint      NOT NULL, -- its facts come after this one; that of the links before is their last_seq
    last_seq     bigint      NOT NULL CHECK (last_seq > after_seq),
    facts        bigint      NOT NULL CHECK (facts > 0),
    facts_digest bytea       NOT NULL, -- of all that is not erased
    names_digest bytea       NOT NULL, -- of what may hold the name of a person
    names_salt   bytea, -- of names_digest; NULL: a name was erased, so it can no longer be compared
    digest       bytea       NOT NULL, -- of all of the above but names_salt, and of the digest of the link before
    sealed_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (cluster, last_seq, month)
);
