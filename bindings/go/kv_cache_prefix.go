// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// PrefixCache keeps keys and values of prompt prefixes for later prompts that begin alike. Any number of goroutines may use one.
type PrefixCache struct {
	object
	pool *Pool
}

// NewPrefixCache makes an empty one of at most so many blocks of the pool.
func (p *Pool) NewPrefixCache(capacity int) (*PrefixCache, error) {
	prefix := &PrefixCache{pool: p}
	err := p.with(func(pool uintptr) error {
		return prefix.take(kindPrefix, native.KvCachePrefixFree, func(out []uintptr) error {
			return native.KvCachePrefixNew(i32(capacity), pool, out)
		})
	})
	if err != nil {
		return nil, err
	}
	return prefix, nil
}

// Insert keeps the blocks that hold a sequence. Sequences of different domains have nothing in common.
func (p *PrefixCache) Insert(domain uint64, tokens []int32, blocks []Block) error {
	return p.with(func(a uintptr) error {
		return native.KvCachePrefixInsert(a, domain, tokens, len(tokens), addresses(blocks), len(blocks))
	})
}

// Match finds the longest cached prefix of a sequence, and lends its blocks with a reference to each, which
// InjectBlocks takes over or Free gives back.
func (p *PrefixCache) Match(domain uint64, tokens []int32) (blocks []Block, matched int, err error) {
	err = p.with(func(a uintptr) error {
		found := make([]uintptr, len(tokens)) // blocks hold a token at least
		var n, m [1]int
		err := native.KvCachePrefixMatch(a, domain, tokens, len(tokens), found, len(found), n[:], m[:])
		if err == nil {
			blocks, matched = p.pool.blocks(found[:n[0]]), m[0]
		}
		return err
	})
	return blocks, matched, err
}

// Size is the number of blocks that are kept.
func (p *PrefixCache) Size() int { return int(get(&p.object, native.KvCachePrefixSize)) }
