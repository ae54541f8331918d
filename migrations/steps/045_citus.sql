-- Views consequences and cooldowns_now and function erase_requesters say the same without what Citus refuses (docs/scale.md): they are applied after steps.
-- No table changes.
SELECT 1;
