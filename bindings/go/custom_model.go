// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// ModelConfig is the sizes of a model. Begin with NewModelConfig for one of your own.
type ModelConfig struct {
	VocabSize  int
	MaxSeqLen  int // maximum tokens of a sequence
	EOS        int // end of sequence, -1 for none
	BOS        int // begin of sequence, -1 for none
	NumLayers  int
	NumHeads   int
	NumKVHeads int
	HeadDim    int
	Hidden     int

	KVLayers   int // layers of a cache for Forward; for a custom model, those that use gen_forward_attention

	Name string // only for custom models; "" is "custom"
}

// NewModelConfig is a configuration with the two sizes that must be set, no EOS and no BOS.
func NewModelConfig(vocabSize, maxSeqLen int) ModelConfig {
	return ModelConfig{VocabSize: vocabSize, MaxSeqLen: maxSeqLen, EOS: -1, BOS: -1}
}

func (c *ModelConfig) set(config uintptr) error {
	for _, field := range []struct {
		value int
		set   func(uintptr, int32) error
	}{
		{c.VocabSize, native.GenModelConfigSetVocabSize}, {c.MaxSeqLen, native.GenModelConfigSetMaxSeqLen},
		{c.EOS, native.GenModelConfigSetEos}, {c.BOS, native.GenModelConfigSetBos},
		{c.NumLayers, native.GenModelConfigSetNumLayers}, {c.NumHeads, native.GenModelConfigSetNumHeads},
		{c.NumKVHeads, native.GenModelConfigSetNumKvHeads}, {c.HeadDim, native.GenModelConfigSetHeadDim},
		{c.Hidden, native.GenModelConfigSetHidden}, {c.KVLayers, native.GenModelConfigSetKvLayers},
	} {
		if err := field.set(config, i32(field.value)); err != nil {
			return err
		}
	}
	if c.Name == "" {
		return nil
	}
	return native.GenModelConfigSetName(config, c.Name)
}

// ConfigSetting sets a field of a model's configuration by its name.
type ConfigSetting struct{ Key, Value string }

// NewCustomModel makes a model of a gen_forward in C. Without a tokenizer prompts are tokens.
func NewCustomModel(forward Symbol, config ModelConfig, tokenizer *Tokenizer, settings ...ConfigSetting) (*Model, error) {
	setters := []func(uintptr) error{config.set}
	for _, s := range settings {
		s := s
		setters = append(setters, func(c uintptr) error { return native.GenModelConfigSet(c, s.Key, s.Value) })
	}
	return newModel(func(out []uintptr) error {
		return build(setters, native.GenModelConfigNew, native.GenModelConfigFree, func(c uintptr) error {
			return tokenizer.pointer().optional(func(t uintptr) error {
				return native.GenModelNewCustom(uintptr(forward), c, t, out)
			})
		})
	})
}

// PadLeft lays sequences out as rows of equal width, each at the right end of its row with pad before it.
func PadLeft(sequences [][]int32, pad int32) (rows []int32, width int, err error) {
	var all []int32
	lengths := make([]int, len(sequences))
	for i, s := range sequences {
		all, lengths[i] = append(all, s...), len(s)
		if len(s) > width {
			width = len(s)
		}
	}
	rows = make([]int32, len(sequences)*width)
	var n [1]int
	err = native.GenPadLeft(all, lengths, len(lengths), pad, rows, len(rows), n[:])
	return rows, n[0], err
}
