/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The journal: where each packed ring stands, kept where the end of this process does not reach.
 *
 * A split ring's used index is in guest memory, for whoever serves the ring next. A packed ring's is
 * nowhere: its used descriptors take the place of the offered ones, and a frontend whose connection
 * broke knows only what it was told last. So each ring has a record here, in a file that is mapped
 * shared (the state file) or, without one, in memory, for a frontend that connects again.
 *
 * The worker writes it, in this order; each line is one store, and a process can be killed between
 * any two of them:
 *
 *      complete    entries[pos] = id, slots, length       (as often as it takes)
 *      publish     intended = the position behind them    A
 *                  all used descriptors but the first
 *                  the first one                          B
 *                  done = intended, its place             C
 *
 * Killed before A: nothing of it has happened; the chains are still offered, and are taken again.
 * Between A and B: some descriptors are overwritten, none can be seen by the guest; what they shall
 * hold is in the entries, so the next process writes them again. From B on the guest may have taken
 * them, and offered them anew: the first one's used bit tells that B was done, as only we set it and
 * the guest keeps it for a whole lap. Nothing is completed twice, and nothing is lost.
 *
 * The control thread empties a record when the frontend has been told where the ring stands, and the
 * ring is stopped: from then on the frontend's word counts. packed_resume() decides what a record is
 * worth to a ring that starts: the guest may have been reset while nobody served it.
 *
 * The file is locked, so that no two processes use it. It is removed by journal_close() when all
 * records are empty; else it stays, for the next process.
 */
#ifndef VIRTQ_JOURNAL_H
#define VIRTQ_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

/* What a popped chain is given back with. */
struct journal_entry {
	uint16_t id;
	uint16_t n_slots;
	uint32_t len;
};

/* Where a ring stands. One store. */
struct journal_mark {
	uint16_t pos;	/* of the next chain to publish; picks its entry */
	uint16_t place; /* of its first slot (packed.h) */
	uint16_t last;	/* place of the used descriptor that was written last */
	uint16_t has_last;
};

struct journal_ring {
	uint32_t size; /* of the ring; 0: the record is empty */
	uint16_t intended;
	_Alignas(64) struct journal_mark done;
	_Alignas(64) struct journal_entry entries[]; /* [pos & mask]: as many as the ring has slots,
							rounded up to a power of two */
};

struct journal;

/*
 * Open the records of `n_rings` rings.
 * @path: of the state file, made when it is missing; NULL: the records are in memory only
 * Return: 0; or a negative errno after a log line: -EBUSY another process uses it, -EEXIST that is
 * no state file.
 */
int journal_open(struct journal **out, const char *path, unsigned n_rings);

/* Let go of the file; remove it if no record is left in it. NULL is accepted. */
void journal_close(struct journal *j);

/*
 * Get a ring's record, with room for `size` entries.
 * Return: 0; or a negative errno when the file system is full.
 */
int journal_get(struct journal *j, unsigned ring, uint32_t size, struct journal_ring **r);

/* Empty the record of a stopped ring. */
void journal_forget(struct journal *j, unsigned ring);

/* ---- what the ring writes ---- */

/* Keep the compiler from moving stores from one side to the other. No more is needed: a processor
 * that stops has done all stores of the instructions before, and none of those behind. */
static inline void journal_order(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void journal_intend(struct journal_ring *r, uint16_t pos)
{
	journal_order();
	__atomic_store_n(&r->intended, pos, __ATOMIC_RELAXED);
	journal_order();
}

static inline void journal_done(struct journal_ring *r, const struct journal_mark *mark)
{
	journal_order();
	__atomic_store(&r->done, mark, __ATOMIC_RELAXED);
	journal_order();
}

/* Make a record anew; a kill in between leaves it empty. */
static inline void journal_begin(struct journal_ring *r, uint32_t size,
				 const struct journal_mark *mark)
{
	__atomic_store_n(&r->size, 0, __ATOMIC_RELAXED);
	journal_intend(r, mark->pos);
	journal_done(r, mark);
	__atomic_store_n(&r->size, size, __ATOMIC_RELAXED);
}

#endif
