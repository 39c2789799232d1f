// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// Model is weights and a tokenizer, ready to run. Any number of goroutines may use one.
type Model struct{ object }

func (m *Model) pointer() *object {
	if m == nil {
		return nil
	}
	return &m.object
}

// ModelOption says how to load a model.
type ModelOption func(options uintptr) error

// WithBackend chooses what computes; "cpu" is the default.
func WithBackend(name string) ModelOption {
	return func(o uintptr) error { return native.GenModelOptionsSetBackend(o, name) }
}

// WithDevice chooses the backend's device; 0 is the default.
func WithDevice(device int) ModelOption {
	return func(o uintptr) error { return native.GenModelOptionsSetDevice(o, i32(device)) }
}

// How many layers WithGPULayers and WithGPUExpertLayers take: every one, or as many as the device has memory for.
const (
	AllGPULayers  = -1
	AutoGPULayers = -2
)

// WithGPULayers runs so many layers, the last ones, on the backend's device and the others on the CPU.
func WithGPULayers(layers int) ModelOption {
	return func(o uintptr) error { return native.GenModelOptionsSetGpuLayers(o, i32(layers)) }
}

// WithGPUExpertLayers keeps the experts of so many of these layers, the last ones, on the device; the others' are computed
// by the CPU.
func WithGPUExpertLayers(layers int) ModelOption {
	return func(o uintptr) error { return native.GenModelOptionsSetGpuExpertLayers(o, i32(layers)) }
}

// WithThreads gives the model a pool of threads of its own.
func WithThreads(threads int) ModelOption {
	return func(o uintptr) error { return native.GenModelOptionsSetThreads(o, i32(threads)) }
}

// WithThreadPool lets the model compute with a pool that others use, too.
func WithThreadPool(pool *ThreadPool) ModelOption {
	return func(o uintptr) error {
		return pool.pointer().optional(func(p uintptr) error { return native.GenModelOptionsSetThreadPool(o, p) })
	}
}

// WithGPUAllocator takes all memory on a device from an allocator, which may be closed once the model is loaded.
func WithGPUAllocator(allocator *GPUAllocator) ModelOption {
	return func(o uintptr) error {
		return allocator.with(func(a uintptr) error { return native.GenModelOptionsSetGpuAllocator(o, a) })
	}
}

// WithAllocator takes memory from a gen_allocator in C.
func WithAllocator(table Symbol) ModelOption {
	return func(o uintptr) error { return native.GenModelOptionsSetAllocator(o, uintptr(table)) }
}

// WithMmap(false) reads the file into memory instead of mapping it.
func WithMmap(on bool) ModelOption {
	return func(o uintptr) error { return native.GenModelOptionsSetMmap(o, flag(on)) }
}

// WithMlock(true) locks the weights in memory; the load fails where the system does not let it.
func WithMlock(on bool) ModelOption {
	return func(o uintptr) error { return native.GenModelOptionsSetMlock(o, flag(on)) }
}

// WithLoadProgress tells a gen_progress_callback in C how far the load is; it may cancel it.
func WithLoadProgress(callback, user Symbol) ModelOption {
	return func(o uintptr) error { return native.GenModelOptionsSetProgress(o, uintptr(callback), uintptr(user)) }
}

// WithMaxSeqLen limits the context to fewer tokens than the model was trained for.
func WithMaxSeqLen(tokens int) ModelOption {
	return func(o uintptr) error { return native.GenModelOptionsSetMaxSeqLen(o, i32(tokens)) }
}

// WithCheckTensors(true) refuses weights that are not finite.
func WithCheckTensors(on bool) ModelOption {
	return func(o uintptr) error { return native.GenModelOptionsSetCheckTensors(o, flag(on)) }
}

// WithModelSetting sets an option by its name, see DescribeModelOptions.
func WithModelSetting(key, value string) ModelOption {
	return func(o uintptr) error { return native.GenModelOptionsSet(o, key, value) }
}

// described adds an option that does nothing, so that there is an object to describe.
func described[O ~func(uintptr) error](options []O) []O {
	return append(options[:len(options):len(options)], nil)
}

// DescribeModelOptions lists all options as JSON, with the values that these give.
func DescribeModelOptions(options ...ModelOption) (description string, err error) {
	err = build(described(options), native.GenModelOptionsNew, native.GenModelOptionsFree, func(o uintptr) (err error) {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenModelOptionsDescribe(o, buffer, capacity, n)
		})
		return err
	})
	return description, err
}

func newModel(create func(out []uintptr) error) (*Model, error) {
	m := new(Model)
	if err := m.take(kindModel, native.GenModelFree, create); err != nil {
		return nil, err
	}
	return m, nil
}

// LoadModel loads a GGUF file.
func LoadModel(path string, options ...ModelOption) (*Model, error) {
	return newModel(func(out []uintptr) error {
		return build(options, native.GenModelOptionsNew, native.GenModelOptionsFree, func(o uintptr) error {
			return native.GenModelLoad(path, o, out)
		})
	})
}

// LoadModelBytes loads a GGUF file that is in memory; data is only needed during the call.
func LoadModelBytes(data []byte, options ...ModelOption) (*Model, error) {
	return newModel(func(out []uintptr) error {
		return build(options, native.GenModelOptionsNew, native.GenModelOptionsFree, func(o uintptr) error {
			return native.GenModelLoadMemory(data, len(data), o, out)
		})
	})
}

// Config tells the model's sizes; those of a closed model are 0.
func (m *Model) Config() ModelConfig {
	return get(&m.object, func(address uintptr) ModelConfig {
		c := native.GenModelGetConfig(address)
		return ModelConfig{
			VocabSize: int(native.GenModelConfigVocabSize(c)), MaxSeqLen: int(native.GenModelConfigMaxSeqLen(c)),
			EOS: int(native.GenModelConfigEos(c)), BOS: int(native.GenModelConfigBos(c)),
			NumLayers: int(native.GenModelConfigNumLayers(c)), NumHeads: int(native.GenModelConfigNumHeads(c)),
			NumKVHeads: int(native.GenModelConfigNumKvHeads(c)), HeadDim: int(native.GenModelConfigHeadDim(c)),
			Hidden: int(native.GenModelConfigHidden(c)), KVLayers: int(native.GenModelConfigNumCacheLayers(c)),
		}
	})
}

// DescribeConfig lists the configuration's fields as JSON.
func (m *Model) DescribeConfig() (description string, err error) {
	err = m.with(func(address uintptr) (err error) {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenModelConfigDescribe(native.GenModelGetConfig(address), buffer, capacity, n)
		})
		return err
	})
	return description, err
}

// MetadataKeys are the keys of the file's metadata.
func (m *Model) MetadataKeys() []string {
	return get(&m.object, func(address uintptr) []string {
		keys := make([]string, native.GenModelMetadataCount(address))
		for i := range keys {
			keys[i] = native.GenModelMetadataKey(address, i)
		}
		return keys
	})
}

// Metadata is a value of the file's metadata as text; long arrays are shortened.
func (m *Model) Metadata(key string) (value string, err error) {
	err = m.with(func(address uintptr) (err error) {
		value, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenModelMetadataValue(address, key, buffer, capacity, n)
		})
		return err
	})
	return value, err
}

// Describe describes the model as JSON.
func (m *Model) Describe() (description string, err error) {
	err = m.with(func(address uintptr) (err error) {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenModelDescribe(address, buffer, capacity, n)
		})
		return err
	})
	return description, err
}

// Memory is a number of bytes: "weights", "workspace", "mapped", "file" or "stream".
func (m *Model) Memory(key string) (int64, error) {
	var bytes [1]int
	err := m.with(func(address uintptr) error { return native.GenModelMemory(address, key, bytes[:]) })
	return int64(bytes[0]), err
}

// Tokenizer is the model's own, nil if it has none. It is usable until the model is closed, and need not be closed itself.
func (m *Model) Tokenizer() *Tokenizer {
	address := get(&m.object, native.GenModelTokenizer)
	if address == 0 {
		return nil
	}
	return &Tokenizer{object{address: address, kind: kindTokenizer, owner: &m.object}}
}

// Forward runs the model over tokens that follow what cache holds, and returns the logits of the last one.
func (m *Model) Forward(tokens []int32, cache *Cache) ([]float32, error) {
	logits := make([]float32, m.Config().VocabSize)
	return logits, m.ForwardInto(tokens, cache, logits)
}

// ForwardInto is Forward with memory of the caller's for the logits.
func (m *Model) ForwardInto(tokens []int32, cache *Cache, logits []float32) error {
	return m.with(func(model uintptr) error {
		return cache.pointer().optional(func(c uintptr) error {
			return native.GenModelForward(model, tokens, len(tokens), c, logits, len(logits))
		})
	})
}

// Importance writes an importance matrix of the model: how large the inputs of its matrices are on the tokens of a text, in
// windows of context tokens, 0 for the usual number. The file keeps textName, "" for none.
func (m *Model) Importance(tokens []int32, context int, textName, out string) error {
	return m.ImportanceProgress(tokens, context, textName, out, 0, 0)
}

// ImportanceProgress is Importance with a gen_progress_callback in C.
func (m *Model) ImportanceProgress(tokens []int32, context int, textName, out string, callback, user Symbol) error {
	return m.with(func(model uintptr) error {
		return native.GenModelImportance(model, tokens, len(tokens), i32(context), textName, out, uintptr(callback), uintptr(user))
	})
}

// Quantize writes a GGUF file with the weights of another in another type, "Q4_K_M" for example.
func Quantize(in, out, kind string) error { return QuantizeProgress(in, out, kind, 0, 0) }

// QuantizeProgress is Quantize with a gen_progress_callback in C.
func QuantizeProgress(in, out, kind string, callback, user Symbol) error {
	return native.GenModelQuantize(in, out, kind, uintptr(callback), uintptr(user))
}

// QuantizeOption is an option of QuantizeWith.
type QuantizeOption func(options uintptr) error

// WithImportance lets the errors of weights count by the importance of their columns, from the file of an importance matrix.
func WithImportance(path string) QuantizeOption { return WithQuantizeSetting("importance", path) }

// WithTensorTypes sets types of matrices by name, "blk.*.attn_v.weight=Q6_K,output.weight=Q8_0": the first pattern that matches.
func WithTensorTypes(patterns string) QuantizeOption { return WithQuantizeSetting("types", patterns) }

// WithQuantizeSetting sets an option by its name, see DescribeQuantizeOptions.
func WithQuantizeSetting(key, value string) QuantizeOption {
	return func(o uintptr) error { return native.GenQuantizeOptionsSet(o, key, value) }
}

// DescribeQuantizeOptions lists all options as JSON, with the values that these give.
func DescribeQuantizeOptions(options ...QuantizeOption) (description string, err error) {
	err = build(described(options), native.GenQuantizeOptionsNew, native.GenQuantizeOptionsFree, func(o uintptr) (err error) {
		description, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenQuantizeOptionsDescribe(o, buffer, capacity, n)
		})
		return err
	})
	return description, err
}
