-- What programs outside of evictrail were notified of (store/delivery). Rows are made and deleted by the replica that notifies.
CREATE TABLE evictrail.receivers (
    cluster     text        NOT NULL,
    receiver    text        NOT NULL, -- cloudevents, traces, kubernetes-events
    since       timestamptz NOT NULL, -- when it was first known: what happened before is not sent
    notified_to timestamptz NOT NULL, -- what changed before, by the clock of the database, was sent
    PRIMARY KEY (cluster, receiver)
);
CREATE TABLE evictrail.deliveries (
    cluster   text        NOT NULL,
    receiver  text        NOT NULL,
    notice_id uuid        NOT NULL,
    at        timestamptz NOT NULL, -- when that happened
    PRIMARY KEY (cluster, receiver, notice_id)
);
