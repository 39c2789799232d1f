// SPDX-License-Identifier: Apache-2.0
// The state of a session: read layer by layer, and gone back to.
using System;
using System.Collections.Generic;
using LibGenerate;

static class States
{
    // What test_model_memory keeps after the first n of the tokens: the last six, newest first.
    static float[] Remembered(int[] tokens, int n)
    {
        var kept = new float[6];
        for (int i = 0; i < kept.Length && i < n; ++i) kept[i] = tokens[n - 1 - i];
        return kept;
    }

    // Compares a session's state with the tokens that the session holds, of which the last is not evaluated.
    static void Holds(Session session, int length)
    {
        SsmState state = session.State;
        int[] tokens = session.Tokens;
        Check.Equal(length, tokens.Length, "length");
        Check.Equal(length - 1, state.Position, "position");
        Check.Same(new[] { 1, 2, 3 }, state.Shape(0), "shape");
        Check.Same(Remembered(tokens, length - 1), state.GetLayer(0), "the last tokens");
        Check.Same(new[] { 1, 1, 1 }, state.Shape(1), "shape of a number");
        Check.Same(new float[] { length - 1 }, state.GetLayer(1), "their number");
    }

    static IReadOnlyList<int> Go(Session session)
    {
        return session.Generate("", Sampling.Greedy(4)).Tokens;
    }

    [Test]
    static void OfASession()
    {
        using (Model model = Given.Custom("test_model_memory"))
        using (var generator = new Generator(model))
        using (Session session = generator.NewSession())
        {
            SsmState state = session.State;
            Check.Equal(2, state.Layers, "layers");
            Check.Equal("custom", state.LayerKind(1), "kind");
            Check.Equal(null, state.LayerKind(2), "no such kind");
            Check.Equal(1, state.LayerIndex(1), "index");
            Check.Equal(-1, state.LayerIndex(2), "no such index");
            Check.Equal(0, state.Position, "position of an empty session");
            Check.Same(new float[6], state.GetLayer(0), "zeros");

            session.Append(new[] { 10, 20, 30, 40, 50, 60, 70, 80, 90 });
            Holds(session, 9);
            long first = state.Snapshot();
            Check.Equal(1L, first, "its number");
            IReadOnlyList<int> once = Go(session);
            Check.Equal(5 + 'a' + (40 + 50 + 60 + 70 + 80 + 90) % 26, once[0], "the sum as a letter");
            Holds(session, 13);
            long second = state.Snapshot();
            IReadOnlyList<int> more = Go(session);
            Holds(session, 17);

            using (Session fork = session.Fork())
            {
                Holds(fork, 17);
                Check.Fails(Status.OutOfRange, () => fork.State.Restore(first), "a fork has no snapshots");
                state.Restore(second);
                Holds(session, 13);
                Holds(fork, 17);
            }
            Check.Same(more, Go(session), "again from the second");
            state.Restore(first);
            Holds(session, 9);
            Check.Fails(Status.State, () => state.Restore(second), "the text behind it is gone");
            Holds(session, 9);
            Check.Same(once, Go(session), "again from the first");
            state.Restore(second);
            Holds(session, 13);
        }
    }

    [Test]
    static void WhatFails()
    {
        using (Model model = Given.Custom("test_model_memory"))
        using (var generator = new Generator(model))
        using (Session session = generator.NewSession())
        {
            SsmState state = session.State;
            session.Append(new[] { 1, 2 });
            Check.Fails(Status.OutOfRange, () => state.GetLayer(2), "no such layer");
            Check.Fails(Status.OutOfRange, () => state.Restore(1), "no such snapshot");
            Check.Fails(Status.Unsupported, () => state.SetLayer(0, new float[6]), "setting");
            Check.Fails(Status.Unsupported, () => state.Reset(), "resetting");
            Holds(session, 2);
            using (TokenStream stream = session.Stream("", Sampling.Greedy(3)))
            {
                Check.Fails(Status.Busy, () => state.Snapshot(), "while the session streams");
            }
            session.Dispose();
            Check.Throws<ObjectDisposedException>(() => state.Snapshot(), "after its session");
        }
        using (Model model = Given.Custom("test_model_hidden"))
        using (var generator = new Generator(model))
        using (Session session = generator.NewSession())
        {
            Check.Fails(Status.Unsupported, () => session.State.Snapshot(), "a state that cannot be copied");
            string message = Check.Throws<GenerateException>(() => session.State.GetLayer(0), "reading").Message;
            Check.That(message.Contains("the test model's state is hidden"), message);
        }
    }
}
