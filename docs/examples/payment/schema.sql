-- SPDX-License-Identifier: MIT
-- What the worker needs in the shop's database. The same text is good for
-- PostgreSQL, where PRAGMA journal_mode falls away.
PRAGMA journal_mode = WAL;

CREATE TABLE orders (
    order_id     text PRIMARY KEY CHECK (length(order_id) BETWEEN 1 AND 60),
    amount_minor bigint NOT NULL CHECK (amount_minor > 0),
    currency     text NOT NULL CHECK (length(currency) = 3)
);

-- One row an order, from the first attempt on. The claim of charge.c writes
-- with ON CONFLICT (order_id), which covers that one index: a second unique
-- column that the claim writes, say provider_key, would give errors and
-- deadlocks between workers instead of a conflict.
CREATE TABLE charge (
    order_id     text PRIMARY KEY,
    provider_key text NOT NULL,
    amount_minor bigint NOT NULL CHECK (amount_minor > 0),
    currency     text NOT NULL,
    state        text NOT NULL
                 CHECK (state IN ('charging', 'paid', 'declined', 'review')),
    fence        bigint NOT NULL,          -- of the worker that claimed it last
    attempts     int NOT NULL DEFAULT 1,
    first_at     bigint NOT NULL,          -- seconds
    provider_ref text UNIQUE
);
