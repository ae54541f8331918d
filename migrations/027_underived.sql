-- +goose Up
-- Subjects that could not be derived: they are left out, so that the others go on, and tried again later.
CREATE TABLE evictrail.derive_failures (
    cluster  text        NOT NULL,
    subject  text        NOT NULL,
    reason   text        NOT NULL,                    -- why, as an error says it
    failures integer     NOT NULL CHECK (failures > 0), -- attempts in a row
    since    timestamptz NOT NULL,                    -- the first of them
    retry_at timestamptz NOT NULL,                    -- not derived before
    PRIMARY KEY (cluster, subject)
);

-- +goose Down
DROP TABLE evictrail.derive_failures;
