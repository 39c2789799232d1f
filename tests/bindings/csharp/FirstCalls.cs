// SPDX-License-Identifier: Apache-2.0
// One call into the library per process: each may be the first, wherever the library is.
//   mono FirstCalls.exe <model> <name of a call>; without a name the names are printed.
using System;
using System.Collections.Generic;
using System.IO;
using LibGenerate;

static class FirstCalls
{
    static int Main(string[] args)
    {
        string model = args.Length > 0 ? args[0] : null;
        string reason;
        int width;
        var calls = new Dictionary<string, Action>
        {
            { "version", () => Library.Version.ToString() },
            { "abi", () => Library.AbiVersion.ToString() },
            { "build", () => Library.BuildInfo.ToString() },
            { "kinds", () => Library.CacheKinds.ToString() },
            { "metrics", () => Library.MetricsDescription.ToString() },
            { "backends", () => Library.Backends.ToString() },
            { "available", () => Library.IsBackendAvailable("cpu", out reason) },
            { "devices", () => Library.DeviceCount("cpu") },
            { "device", () => Library.DescribeDevice("cpu", 0) },
            { "name", () => Library.NameOf(Status.Io) },
            { "log", () => Library.SetLog(default(NativeSymbol)) },
            { "level", () => Library.SetLogLevel(LogLevel.Off) },
            { "pad", () => Library.PadLeft(new[] { new[] { 1 } }, 0, out width) },
            { "symbol", () => new NativeSymbol("libc.so.6", "free") },
            { "pool", () => new WorkerPool(1) },
            { "load", () => Model.Load(model) },
            { "memory", () => Model.Load(File.ReadAllBytes(model)) },
            { "async", () => Model.LoadAsync(model).Wait() },
            { "estimate", () => new MemoryEstimate(model) },
            { "quantize", () => Expect(Status.Io, () => Model.Quantize("/no/such/file", "/no/such/other", "Q8_0")) },
            { "merge", () => Expect(Status.Io, () => Model.MergeAdapter("/no/such/file", "/no/such", 1, "/no/such/other")) },
            { "custom", () => Expect(Status.InvalidArgument,
                                     () => Model.Custom(default(NativeSymbol), new CustomModelConfig())) },
            { "tokenizer", () => new Tokenizer(model) },
            { "sampling", () => new Sampling().Describe() },
            { "options", () => new GeneratorOptions().Describe() },
            { "model options", () => new ModelOptions().Describe() },
            { "tiers", () => new TierConfig().Describe() },
            { "config", () => new CustomModelConfig().Describe() },
            { "cache", () => KvCache.Float32(1, 1) },
            { "compressed", () => new CompressedKvCache(1, 0, 0, 1) },
            { "tensor", () => new TensorKvCache(null, 1, 1) },
            { "tiered", () => new TieredKvCache(new TierConfig { Layers = 1, MaxSequenceLength = 1 }).Dispose() },
            { "causal", () => KvBatchCache.Causal() },
            { "window", () => KvBatchCache.SlidingWindow(1) },
            { "window with memory", () => KvBatchCache.SlidingWindow(1, 2) },
            { "chunked", () => KvBatchCache.Chunked(1) },
            { "encoder", () => KvBatchCache.Encoder() },
            { "blocks", () => new KvPool(1, 1, 1, 1) },
            { "radix", () => new RadixTree(1, 1) },
            { "state", () => new SsmState(1, 1, 1) },
            { "tracer", () => new Tracer() },
            { "profile", () => new Profile() },
            { "collector", () => new MetricsCollector() }
        };
        if (args.Length < 2)
        {
            foreach (string name in calls.Keys) Console.WriteLine(name);
            return 0;
        }
        try
        {
            calls[args[1]]();
            return 0;
        }
        catch (DllNotFoundException e)
        {
            Console.WriteLine(e.Message);
            return 3;
        }
    }

    static void Expect(Status status, Action action)
    {
        try
        {
            action();
        }
        catch (GenerateException e) when (e.Status == status)
        {
        }
    }
}
