// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// RadixTree is an index from token sequences to block ids, for programs that keep blocks themselves. Any number of
// goroutines may use one.
type RadixTree struct{ object }

// NewRadixTree makes an empty index of at most maxBlocks blocks of blockSize tokens.
func NewRadixTree(blockSize, maxBlocks int) (*RadixTree, error) {
	r := new(RadixTree)
	if err := r.take(kindRadix, native.KvCacheRadixFree, func(out []uintptr) error {
		return native.KvCacheRadixNew(i32(blockSize), i32(maxBlocks), out)
	}); err != nil {
		return nil, err
	}
	return r, nil
}

// Insert adds the blocks of a sequence that are not there yet and returns the ids of those that are, in order; fewer than
// the sequence has where there was no room.
func (r *RadixTree) Insert(tokens []int32) (ids []int32, err error) {
	err = r.with(func(a uintptr) error {
		found := make([]int32, len(tokens)) // blocks hold a token at least
		var n [1]int
		err := native.KvCacheRadixInsert(a, tokens, len(tokens), found, len(found), n[:])
		if err == nil {
			ids = found[:n[0]]
		}
		return err
	})
	return ids, err
}

// Match finds the longest cached prefix of a sequence: its number of tokens and its blocks.
func (r *RadixTree) Match(tokens []int32) (matched int, ids []int32, err error) {
	return r.find(native.KvCacheRadixMatch, tokens)
}

// Pin is Match, and what is found stays until Unpin was called as often, with the tokens found.
func (r *RadixTree) Pin(tokens []int32) (matched int, ids []int32, err error) {
	return r.find(native.KvCacheRadixPin, tokens)
}

func (r *RadixTree) find(look func(uintptr, []int32, int, []int, []int32, int, []int) error, tokens []int32) (matched int, ids []int32, err error) {
	err = r.with(func(a uintptr) error {
		found := make([]int32, len(tokens))
		var m, n [1]int
		err := look(a, tokens, len(tokens), m[:], found, len(found), n[:])
		if err == nil {
			matched, ids = m[0], found[:n[0]]
		}
		return err
	})
	return matched, ids, err
}

// Unpin takes one Pin back.
func (r *RadixTree) Unpin(tokens []int32) error {
	return r.with(func(a uintptr) error { return native.KvCacheRadixUnpin(a, tokens, len(tokens)) })
}

// Evict removes the least recently used leaf and returns its id, -1 if there is none.
func (r *RadixTree) Evict() (int32, error) {
	var id [1]int32
	err := r.with(func(a uintptr) error { return native.KvCacheRadixEvict(a, id[:]) })
	return id[0], err
}

// Remove takes all sequences out that begin with these tokens and returns the number of blocks that went.
func (r *RadixTree) Remove(tokens []int32) (int, error) {
	var removed [1]int
	err := r.with(func(a uintptr) error { return native.KvCacheRadixRemove(a, tokens, len(tokens), removed[:]) })
	return removed[0], err
}

// Size is the number of blocks.
func (r *RadixTree) Size() int { return int(get(&r.object, native.KvCacheRadixSize)) }

// RadixStats is what a tree did.
type RadixStats struct{ Hits, Misses, Evictions uint64 }

// Stats tells what the tree did.
func (r *RadixTree) Stats() (RadixStats, error) {
	var hits, misses, evictions [1]uint64
	err := r.with(func(a uintptr) error { return native.KvCacheRadixStats(a, hits[:], misses[:], evictions[:]) })
	return RadixStats{hits[0], misses[0], evictions[0]}, err
}

// SetEvictFunction tells a kv_cache_radix_evict_callback in C of each id that is free again; 0 for none.
func (r *RadixTree) SetEvictFunction(function, user Symbol) error {
	return r.with(func(a uintptr) error {
		return native.KvCacheRadixSetEvictCallback(a, uintptr(function), uintptr(user))
	})
}
