// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// MemoryEstimate is what a model, a generator and one session take, in bytes.
type MemoryEstimate struct {
	Weights   int64
	Workspace int64 // scratch of forward passes
	Cache     int64 // keys and values of one session with a full context
	Snapshots int64 // the most that snapshots of its state may take
	Peak      int64 // the maximum at any time, loading included
	// The same of a device's memory; what is above is the host's.
	DeviceWeights, DeviceWorkspace, DeviceCache, DeviceSnapshots, DevicePeak int64

	Mapped int64 // what stays mapped of the file, not part of the peak
	File   int64
}

// EstimateMemory tells what loading a file with these options and filling one session would take, without doing so.
func EstimateMemory(path string, model []ModelOption, generator []GeneratorOption) (MemoryEstimate, error) {
	var e MemoryEstimate
	var out [1]uintptr
	err := build(model, native.GenModelOptionsNew, native.GenModelOptionsFree, func(m uintptr) error {
		return build(generator, native.GenOptionsNew, native.GenOptionsFree, func(g uintptr) error {
			return native.GenEstimateMemory(path, m, g, out[:])
		})
	})
	if err != nil {
		return e, err
	}
	defer native.GenMemoryEstimateFree(out[0])
	for _, field := range []struct {
		key   string
		value *int64
	}{
		{"weights", &e.Weights}, {"workspace", &e.Workspace}, {"cache", &e.Cache},
		{"snapshots", &e.Snapshots}, {"peak", &e.Peak},
		{"device_weights", &e.DeviceWeights}, {"device_workspace", &e.DeviceWorkspace},
		{"device_cache", &e.DeviceCache}, {"device_snapshots", &e.DeviceSnapshots}, {"device_peak", &e.DevicePeak},
		{"mapped", &e.Mapped}, {"file", &e.File},
	} {
		var bytes [1]int
		if err := native.GenMemoryEstimateGet(out[0], field.key, bytes[:]); err != nil {
			return e, err
		}
		*field.value = int64(bytes[0])
	}
	return e, nil
}
