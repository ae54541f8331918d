// Package evidence shows that recorded facts were not changed afterwards. Facts of a day are sealed once it is over:
// their digest follows from them and from the digest of the day before, so that who changes, removes, adds or reorders
// one has to change all later digests, too. Those are kept outside of the database (an AnchorFile), where who can write
// to it cannot reach them.
//
//	links, err := evidence.Seal(ctx, db, "prod", midnight)       // days that ended before, one link for each
//	added, err := anchors.Append(links)                          // a line for each, outside
//	report, err := evidence.Verify(ctx, db, "prod", anchors, nil) // report.Problems: the days that differ
//
// Three facts make two links:
//
//	seq  stored at          happened at        link
//	1    2026-11-20 23:59   2026-11-20 23:59   day 2026-11-20, month 2026-11: facts after 0, up to 1
//	2    2026-11-21 00:01   2026-11-21 00:01   day 2026-11-21, month 2026-11: facts after 1, up to 3
//	3    2026-11-21 00:02   2026-10-30 12:00   day 2026-11-21, month 2026-10: facts after 1, up to 3
//
// A day is what was stored on it, in the order of evictrail.events.seq, so nothing comes late: a fact of last week that
// is stored today belongs to today. What was committed has lower numbers than what is committed later, as replicas
// record one after the other, so a sealed link never gets another fact. Two things change facts later, and must not
// look like a forgery:
//
//   - Retention drops facts by the month in which they happened. So a day has a link for each such month. What is left of
//     a dropped link is its digests, which the chain still covers.
//   - Names of people are erased in requests. What may hold one (erasable) is left out of the digest of facts, and has one of
//     its own with a salt, which evictrail.erase_requesters forgets with the first name. Then it stays as it was sealed.
//
// digest.go has how facts and links are encoded, seal.go and verify.go the two operations, anchor.go the lines outside.
package evidence
