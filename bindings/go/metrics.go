// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"encoding/json"

	"libgenerate.dev/generate/internal/native"
)

// Metrics collects what generators count and measure, see WithMetrics. Any number of goroutines may use one.
type Metrics struct{ object }

func (m *Metrics) pointer() *object {
	if m == nil {
		return nil
	}
	return &m.object
}

// NewMetrics makes an empty collector.
func NewMetrics() (*Metrics, error) {
	m := new(Metrics)
	if err := m.take(kindMetrics, native.GenMetricsMemoryFree, native.GenMetricsMemoryNew); err != nil {
		return nil, err
	}
	return m, nil
}

// DescribeMetrics lists all metrics as JSON.
func DescribeMetrics() (string, error) { return text(native.GenMetricsDescribe) }

// MetricsSnapshot is one moment of all metrics. What was never told is not there.
type MetricsSnapshot struct {
	Counters   map[string]float64   `json:"counters"`
	Gauges     map[string]float64   `json:"gauges"`
	Histograms map[string]Histogram `json:"histograms"`
}

// Histogram is a distribution.
type Histogram struct {
	Count   int64    `json:"count"`
	Sum     float64  `json:"sum"`
	Buckets []Bucket `json:"buckets"`
}

// Bucket counts all values up to a bound; nil is infinity.
type Bucket struct {
	Bound *float64 `json:"le"`
	Count int64    `json:"count"`
}

// JSON is one moment of all metrics as JSON.
func (m *Metrics) JSON() (snapshot string, err error) {
	err = m.with(func(address uintptr) (err error) {
		snapshot, err = text(func(buffer []byte, capacity int, n []int) error {
			return native.GenMetricsMemorySnapshot(address, buffer, capacity, n)
		})
		return err
	})
	return snapshot, err
}

// Snapshot is one moment of all metrics.
func (m *Metrics) Snapshot() (snapshot MetricsSnapshot, err error) {
	text, err := m.JSON()
	if err == nil {
		err = json.Unmarshal([]byte(text), &snapshot)
	}
	return snapshot, err
}

// Value is that of a counter or gauge, or of a histogram with ".count" or ".sum" behind its name.
func (m *Metrics) Value(name string) float64 {
	return get(&m.object, func(address uintptr) float64 { return native.GenMetricsMemoryValue(address, name) })
}
