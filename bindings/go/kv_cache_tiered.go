// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strings"

	"libgenerate.dev/generate/internal/native"
)

// Tier is where a layer of a tiered cache is.
type Tier int32

// Tiers.
const (
	TierHot  Tier = 0 // float32 in memory
	TierWarm Tier = 1 // a compact form in memory
	TierCold Tier = 2 // that form in a file
)

// TierOption says how a tiered cache works, for NewTieredCache and WithTieredKV.
type TierOption func(config uintptr) error

func buildTiers(options []TierOption, use func(config uintptr) error) error {
	return build(described(options), native.KvCacheTierConfigNew, native.KvCacheTierConfigFree, use)
}

func tierNumber(set func(uintptr, int32) error, n int) TierOption {
	return func(c uintptr) error { return set(c, i32(n)) }
}

func tierText(set func(uintptr, string) error, text string) TierOption {
	return func(c uintptr) error {
		if strings.Contains(text, "\x00") {
			return invalid("%q has a NUL in it", text)
		}
		return set(c, text)
	}
}

// WithTierLayers sets the number of layers.
func WithTierLayers(layers int) TierOption {
	return tierNumber(native.KvCacheTierConfigSetNumLayers, layers)
}

// WithTierMaxSeqLen sets the maximum positions of a layer.
func WithTierMaxSeqLen(positions int) TierOption {
	return tierNumber(native.KvCacheTierConfigSetMaxSeqLen, positions)
}

// WithTierChunkSize sets the positions that the warm form "mean" makes one of.
func WithTierChunkSize(positions int) TierOption {
	return tierNumber(native.KvCacheTierConfigSetChunkSize, positions)
}

// WithDemoteThreshold sets how often a layer must have been used to escape demotion.
func WithDemoteThreshold(uses int) TierOption {
	return tierNumber(native.KvCacheTierConfigSetDemoteThreshold, uses)
}

// WithPromoteThreshold sets how often a layer must have been used to be promoted.
func WithPromoteThreshold(uses int) TierOption {
	return tierNumber(native.KvCacheTierConfigSetPromoteThreshold, uses)
}

// WithColdDir sets the folder for files.
func WithColdDir(path string) TierOption { return tierText(native.KvCacheTierConfigSetColdDir, path) }

// WithStoreID sets the name of the cache among those in the folder.
func WithStoreID(id string) TierOption { return tierText(native.KvCacheTierConfigSetStoreId, id) }

// WithWarmForm sets the warm form: "fp32", "fp16", "fp8", "q4", "q3" or "mean".
func WithWarmForm(form string) TierOption { return tierText(native.KvCacheTierConfigSetWarmForm, form) }

// WithHotMemory sets the memory for a generating session, in MiB.
func WithHotMemory(mebibytes int) TierOption {
	return tierNumber(native.KvCacheTierConfigSetHotMemory, mebibytes)
}

// WithHotBlocks sets how many blocks of newest positions a generating session keeps in memory.
func WithHotBlocks(blocks int) TierOption {
	return tierNumber(native.KvCacheTierConfigSetHotBlocks, blocks)
}

// WithTierBlockSize sets the positions that a generating session moves at once.
func WithTierBlockSize(positions int) TierOption {
	return tierNumber(native.KvCacheTierConfigSetBlockSize, positions)
}

// WithPrefetchLayers sets how many layers are read ahead; -1 leaves it to the library.
func WithPrefetchLayers(layers int) TierOption {
	return tierNumber(native.KvCacheTierConfigSetPrefetchLayers, layers)
}

// WithTierAllocator takes memory from a gen_allocator in C.
func WithTierAllocator(table Symbol) TierOption {
	return func(c uintptr) error { return native.KvCacheTierConfigSetAllocator(c, uintptr(table)) }
}

// WithHotLayersOnGPU keeps hot layers in a device's memory.
func WithHotLayersOnGPU(allocator *GPUAllocator) TierOption {
	return func(c uintptr) error {
		return allocator.with(func(table uintptr) error { return native.KvCacheTierConfigSetGpuAllocator(c, table) })
	}
}

// WithTierSetting sets an option by its name, see DescribeTierOptions.
func WithTierSetting(key, value string) TierOption {
	return func(c uintptr) error { return native.KvCacheTierConfigSet(c, key, value) }
}

// DescribeTierOptions lists all options as JSON, with the values that these give.
func DescribeTierOptions(options ...TierOption) (description string, err error) {
	err = buildTiers(options, func(c uintptr) (err error) {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.KvCacheTierConfigDescribe(c, buffer, capacity, n)
		})
		return err
	})
	return description, err
}

// TieredCache is a Cache that moves whole layers between memory and files by use.
type TieredCache struct{ Cache }

func newTiered(create func(config uintptr, out []uintptr) error, options []TierOption) (*TieredCache, error) {
	c := new(TieredCache)
	if err := c.take(kindCache, native.KvCacheFree, func(out []uintptr) error {
		return buildTiers(options, func(config uintptr) error { return create(config, out) })
	}); err != nil {
		return nil, err
	}
	return c, nil
}

// NewTieredCache makes an empty cache; WithTierLayers and WithTierMaxSeqLen must be among the options.
func NewTieredCache(options ...TierOption) (*TieredCache, error) {
	return newTiered(native.KvCacheTieredNew, options)
}

// OpenTieredCache opens the cache that another left in the folder of WithColdDir.
func OpenTieredCache(options ...TierOption) (*TieredCache, error) {
	return newTiered(native.KvCacheTieredOpen, options)
}

// Tier tells where a layer is.
func (c *TieredCache) Tier(layer int) Tier {
	return Tier(get(&c.object, func(a uintptr) int32 { return native.KvCacheTieredTier(a, i32(layer)) }))
}

// AccessCount tells how often a layer was used since the last Manage or Reset.
func (c *TieredCache) AccessCount(layer int) int64 {
	return get(&c.object, func(a uintptr) int64 { return native.KvCacheTieredAccessCount(a, i32(layer)) })
}

// LayerLossy tells whether the content of the layer has been through a lossy warm form.
func (c *TieredCache) LayerLossy(layer int) bool {
	return get(&c.object, func(a uintptr) bool { return native.KvCacheTieredIsLossy(a, i32(layer)) != 0 })
}

// Promote moves a layer one tier up.
func (c *TieredCache) Promote(layer int) error {
	return c.with(func(a uintptr) error { return native.KvCacheTieredPromote(a, i32(layer)) })
}

// Demote moves a layer one tier down.
func (c *TieredCache) Demote(layer int) error {
	return c.with(func(a uintptr) error { return native.KvCacheTieredDemote(a, i32(layer)) })
}

// Manage moves each layer by how often it was used, and counts from 0 again.
func (c *TieredCache) Manage() error { return c.with(native.KvCacheTieredManage) }

// Prefetch has copies of layers made in the background, which the next Get takes.
func (c *TieredCache) Prefetch(layers ...int) error {
	return c.with(func(a uintptr) error { return native.KvCacheTieredPrefetchAsync(a, i32s(layers), len(layers)) })
}

// GetPrefetched takes the copy of a layer without waiting for it; a shape of 0 if there is none.
func (c *TieredCache) GetPrefetched(layer int) (k, v []float32, s Shape, err error) {
	err = c.with(func(a uintptr) error {
		var numbers [3]int32
		if err := native.KvCacheTieredGetPrefetched(a, i32(layer), nil, 0, nil, 0, numbers[:]); err != nil {
			return err
		}
		if s = shape(numbers); s.size() == 0 {
			return nil
		}
		k, v = make([]float32, s.size()), make([]float32, s.size())
		return native.KvCacheTieredGetPrefetched(a, i32(layer), k, len(k), v, len(v), numbers[:])
	})
	return k, v, s, err
}

// CloseFiles ends the background thread and forgets everything in memory, and tells what could not be removed or written,
// which Close cannot. A folder of WithColdDir keeps the files of cold layers.
func (c *TieredCache) CloseFiles() error { return c.with(native.KvCacheTieredClose) }
