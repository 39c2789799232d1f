#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/prometheus.c: its page keeps to the text format and agrees with what was asked of it.

usage: prometheus_test.py PROGRAM SOURCE_DIR
"""
import os
import re
import subprocess
import sys
import unittest

PROGRAM, SOURCE = sys.argv[1:3]
DRAFT = os.path.join(SOURCE, "examples/demo_model/draft.gguf")


def page(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300)


def parse(text):
    """{name: (kind, {sample: value})}; samples are all of the metric's name and come in the order of the page."""
    metrics = {}
    for line in text.splitlines():
        header = re.fullmatch(r"# TYPE ([a-z_]+) (counter|gauge|histogram)", line)
        if header:
            name = header[1]
            assert name not in metrics, name
            metrics[name] = (header[2], {})
            continue
        sample = re.fullmatch(r'([a-z_]+(?:\{le="[^"]+"\})?) (\S+)', line)
        assert sample and sample[1].startswith(name), line
        metrics[name][1][sample[1]] = float(sample[2])
    return metrics


class Page(unittest.TestCase):
    def test_it_says_what_was_done(self):
        done = page(DRAFT, "Once upon a time", "The fox", "Una said")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        metrics = parse(done.stdout)

        def value(name):
            return metrics[name][1][name]
        self.assertEqual(value("gen_requests_total"), 3)
        self.assertEqual(sum(value(name) for name in metrics if name.startswith("gen_finished_")), 3)
        tokens = value("gen_completion_tokens_total")
        self.assertTrue(3 <= tokens <= 120)
        self.assertGreaterEqual(value("gen_prompt_tokens_total"), 6)
        histograms = {name: samples for name, (kind, samples) in metrics.items() if kind == "histogram"}
        self.assertEqual(histograms["gen_first_token_seconds"]["gen_first_token_seconds_count"], 3)
        self.assertEqual(histograms["gen_inter_token_seconds"]["gen_inter_token_seconds_count"], tokens - 3)
        self.assertEqual(histograms["gen_batch_sequences"]["gen_batch_sequences_count"], value("gen_steps_total"))
        for name, samples in histograms.items():
            counts = [count for sample, count in samples.items() if "_bucket" in sample]
            self.assertEqual(counts, sorted(counts))
            self.assertEqual(counts[-1], samples[name + "_count"])
            self.assertIn(name + '_bucket{le="+Inf"}', samples)
        # The sessions are gone, and the pool had room for all of them.
        self.assertEqual(metrics["gen_cache_blocks_used"][0], "gauge")
        self.assertGreater(value("gen_cache_blocks_free"), 0)
        self.assertFalse(any(name.startswith("gen_errors_") for name in metrics))

    def test_failures_are_on_it(self):
        done = page(DRAFT, "The fox", "")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^the prompt has no tokens.*\n$")
        metrics = parse(done.stdout)
        self.assertEqual(metrics["gen_errors_invalid_argument_total"][1], {"gen_errors_invalid_argument_total": 1})
        self.assertEqual(metrics["gen_requests_total"][1], {"gen_requests_total": 1})

    def test_what_it_cannot_do(self):
        self.assertEqual(page().returncode, 2)
        done = page("/nowhere", "a")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("/nowhere", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
