-- Clusters that move to another database, or from one (store/move). A cluster of which only a part is here is neither
-- recorded nor derived, and no facts are dropped while one arrives.
CREATE TABLE evictrail.moves (
    cluster   text        NOT NULL PRIMARY KEY,
    state     text        NOT NULL CHECK (state IN ('arriving', 'arrived', 'leaving')),
    peer      text        NOT NULL, -- the other database: the identifier of its server, and its name
    began_at  timestamptz NOT NULL DEFAULT now(),
    ended_at  timestamptz, -- when all of it was here, and compared
    copied    text[]      NOT NULL DEFAULT '{}', -- tables that are here whole, or were before the source changed
    after_key text[], -- last row that is here of the table that comes next, in the order of the source; NULL: none is
    digests   jsonb, -- of one that has arrived: its rows at the source, by table
    CHECK ((state = 'arrived') = (digests IS NOT NULL))
);
