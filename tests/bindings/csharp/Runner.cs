// SPDX-License-Identifier: Apache-2.0
// Runs the tests of the C# binding: static methods with [Test] of the classes named on the command line.
//   mono Tests.exe <folder of the sources> <library of test models> <class…>
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Reflection;
using LibGenerate;

[AttributeUsage(AttributeTargets.Method)]
sealed class TestAttribute : Attribute
{
}

sealed class Failed : Exception
{
    internal Failed(string message)
        : base(message)
    {
    }
}

static class Check
{
    internal static void That(bool holds, string what)
    {
        if (!holds) throw new Failed(what);
    }

    internal static void Equal<T>(T expected, T found, string what)
    {
        if (!EqualityComparer<T>.Default.Equals(expected, found)) throw new Failed(what + ": " + found + ", not " + expected);
    }

    internal static void Same<T>(IReadOnlyList<T> expected, IReadOnlyList<T> found, string what)
    {
        Equal(expected.Count, found.Count, what + ", number");
        for (int i = 0; i < found.Count; ++i) Equal(expected[i], found[i], what + " at " + i);
    }

    internal static E Throws<E>(Action action, string what)
        where E : Exception
    {
        try
        {
            action();
        }
        catch (E e)
        {
            return e;
        }
        throw new Failed(what + " did not throw " + typeof(E).Name);
    }

    internal static void Fails(Status status, Action action, string what)
    {
        Equal(status, Throws<GenerateException>(action, what).Status, what);
    }
}

static class Given
{
    internal static string Source;
    internal static string TestModels;
    static readonly Lazy<Model> story = new Lazy<Model>(() => LibGenerate.Model.Load(StoryPath));

    internal static string StoryPath
    {
        get { return Path.Combine(Source, "examples/demo_model/story.gguf"); }
    }

    internal static Model Story
    {
        get { return story.Value; }
    }

    internal static Model Custom(string symbol)
    {
        var config = new CustomModelConfig { VocabularySize = 4096, MaxSequenceLength = 1 << 20 };
        return LibGenerate.Model.Custom(new NativeSymbol(TestModels, symbol), config, Story.Tokenizer);
    }

    internal static Sampling Endless()
    {
        return new Sampling { Temperature = 0, IgnoreEnd = true, MaxNewTokens = 1000000 };
    }
}

static class Runner
{
    static int Main(string[] args)
    {
        Given.Source = args[0];
        Given.TestModels = args[1];
        int failed = 0, run = 0;
        for (int i = 2; i < args.Length; ++i)
        {
            Type type = Type.GetType(args[i], true);
            foreach (MethodInfo method in type.GetMethods(BindingFlags.Static | BindingFlags.NonPublic | BindingFlags.Public))
            {
                if (method.GetCustomAttribute<TestAttribute>() == null) continue;
                ++run;
                var clock = Stopwatch.StartNew();
                try
                {
                    method.Invoke(null, null);
                    Console.WriteLine("ok     {0,5} ms  {1}.{2}", clock.ElapsedMilliseconds, type.Name, method.Name);
                }
                catch (TargetInvocationException e)
                {
                    ++failed;
                    Console.WriteLine("FAILED {0,5} ms  {1}.{2}: {3}", clock.ElapsedMilliseconds, type.Name, method.Name,
                                      e.InnerException is Failed ? e.InnerException.Message : e.InnerException.ToString());
                }
            }
        }
        if (run == 0) Console.WriteLine("no tests");
        return failed == 0 && run > 0 ? 0 : 1;
    }
}
