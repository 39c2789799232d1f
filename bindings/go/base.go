// SPDX-License-Identifier: Apache-2.0

package generate

import "libgenerate.dev/generate/internal/native"

// Version is that of the C library, "0.1.0" for example.
func Version() string { return native.GenVersion() }

// ABIVersion is that of the C library's binary interface.
func ABIVersion() int { return int(native.GenAbiVersion()) }

// BuildInfo tells as JSON what the C library has in it: version, compiler, CPU level, backends, formats, architectures.
func BuildInfo() (string, error) { return text(native.GenBuildInfo) }

// Backends are the names of the backends that the library knows.
func Backends() []string {
	names := make([]string, native.GenBackendCount())
	for i := range names {
		names[i] = native.GenBackendName(int32(i))
	}
	return names
}

// BackendAvailable is nil if a backend can be used here, or else says why not.
func BackendAvailable(name string) error { return native.GenBackendAvailable(name) }

// DeviceCount is the number of devices of a backend.
func DeviceCount(backend string) int { return int(native.GenDeviceCount(backend)) }

// DescribeDevice tells as JSON what a device of a backend is.
func DescribeDevice(backend string, device int) (string, error) {
	return text(func(buffer []byte, capacity int, n []int) error {
		return native.GenDeviceDescribe(backend, i32(device), buffer, capacity, n)
	})
}

// LogLevel says how much is logged.
type LogLevel int32

// Levels of the log.
const (
	LogOff     LogLevel = 0
	LogError   LogLevel = 1
	LogWarning LogLevel = 2
	LogInfo    LogLevel = 3
	LogDebug   LogLevel = 4
)

// SetLogLevel sets what reaches the function of SetLogFunction.
func SetLogLevel(level LogLevel) { native.GenLogSetLevel(int32(level)) }

// SetLogFunction gives log lines to a gen_log_callback in C; 0 for none.
func SetLogFunction(function, user Symbol) {
	native.GenLogSetCallback(uintptr(function), uintptr(user))
}

// Symbol is the address of a function or table in C, of a gen_forward for example. Go functions cannot be given to the C
// library, which would call them on threads and at moments that Go does not like.
type Symbol uintptr

// NativeSymbol finds a symbol in a shared library, which then stays loaded.
func NativeSymbol(library, name string) (Symbol, error) {
	var address [1]int64
	err := native.GenBindingSymbol(library, name, address[:])
	return Symbol(address[0]), err
}

// ThreadPool is threads that several models share, see WithThreadPool.
type ThreadPool struct{ object }

func (p *ThreadPool) pointer() *object {
	if p == nil {
		return nil
	}
	return &p.object
}

// NewThreadPool makes a pool of threads, the calling one included; 0 means one per usable CPU. With cpus they are
// pinned to these, in turn.
func NewThreadPool(threads int, cpus ...int) (*ThreadPool, error) {
	p := new(ThreadPool)
	if err := p.take(kindThreadPool, native.GenThreadPoolFree, func(out []uintptr) error {
		return native.GenThreadPoolNew(i32(threads), i32s(cpus), len(cpus), out)
	}); err != nil {
		return nil, err
	}
	return p, nil
}
