// SPDX-License-Identifier: Apache-2.0
// Models that call tools until they have an answer.
using System;
using System.Runtime.ExceptionServices;
using System.Threading;
using System.Threading.Tasks;

namespace LibGenerate
{
    /// <summary>How an agent works.</summary>
    public sealed class AgentOptions : Settings
    {
        /// <summary>The system message.</summary>
        public string System { get; set; }
        /// <summary>How answers are generated.</summary>
        public Sampling Sampling { get; set; }

        /// <summary>Sets one by name; docs/options.md has all.</summary>
        public AgentOptions Set(string key, string value)
        {
            Add(key, value);
            return this;
        }

        /// <summary>All options as JSON.</summary>
        public string Describe()
        {
            using (Handle native = ToNative())
            {
                return Sized.Text((byte[] buf, long capacity, out long n) =>
                    Native.gen_agent_options_describe(native, buf, capacity, out n));
            }
        }

        internal Handle ToNative()
        {
            Loader.Ensure();
            IntPtr options;
            Native.gen_agent_options_new(out options);
            return Apply(HandleKind.AgentOptions, options, native =>
            {
                if (System != null)
                {
                    Native.gen_agent_options_set(native, Utf8.Bytes("system"), Utf8.Terminated(System, "System"));
                }
                if (Sampling != null)
                {
                    using (Handle sampling = LibGenerate.Sampling.Make(Sampling, null))
                    {
                        Native.gen_agent_options_set_sampling(native, sampling);
                    }
                }
                ApplyNamed(native, Native.gen_agent_options_set);
            });
        }
    }

    /// <summary>What an AgentEvent tells.</summary>
    public enum AgentEventKind
    {
        /// <summary>Text of the answer.</summary>
        Text = Native.GEN_AGENT_TEXT,
        /// <summary>Text of the model's reasoning.</summary>
        Reasoning = Native.GEN_AGENT_REASONING,
        /// <summary>A call begins.</summary>
        CallName = Native.GEN_AGENT_CALL_NAME,
        /// <summary>More of its JSON.</summary>
        Arguments = Native.GEN_AGENT_ARGUMENTS,
        /// <summary>The call is complete.</summary>
        CallEnd = Native.GEN_AGENT_CALL_END,
        /// <summary>It is none after all: what was written of it follows as text.</summary>
        CallBroken = Native.GEN_AGENT_CALL_BROKEN,
        /// <summary>A step begins.</summary>
        StepBegan = Native.GEN_AGENT_STEP_BEGAN,
        /// <summary>A tool begins.</summary>
        ToolBegan = Native.GEN_AGENT_TOOL_BEGAN,
        /// <summary>It has ended; the text is its output.</summary>
        ToolEnded = Native.GEN_AGENT_TOOL_ENDED,
        /// <summary>The step has ended; the text is the model's output.</summary>
        StepEnded = Native.GEN_AGENT_STEP_ENDED
    }

    /// <summary>What happens in a run.</summary>
    public sealed class AgentEvent
    {
        readonly Matter matter;

        internal AgentEvent(Matter matter)
        {
            this.matter = matter;
        }

        /// <summary>What it is.</summary>
        public AgentEventKind Kind
        {
            get { return (AgentEventKind)matter.Kind; }
        }

        /// <summary>From 1.</summary>
        public int Step
        {
            get { return matter.Step; }
        }

        /// <summary>Number of the call in its step, from 0; -1 where the event is not about one.</summary>
        public int Call
        {
            get { return matter.Call; }
        }

        /// <summary>Of the tool; else empty.</summary>
        public string Name
        {
            get { return matter.Name; }
        }

        /// <summary>Of the call, of events about its running; else empty.</summary>
        public string Id
        {
            get { return matter.Id; }
        }

        /// <summary>Of an answer, arguments or output.</summary>
        public string Text
        {
            get { return matter.Text; }
        }

        /// <summary>Of ToolEnded: the call failed.</summary>
        public bool IsError
        {
            get { return matter.IsError; }
        }
    }

    internal delegate void AgentWork(IntPtr callback, IntPtr user, out IntPtr result);

    internal static class AgentCall
    {
        // Events are told on a thread of their own; what their consumer throws comes out of here.
        internal static Result Run(Action<Handle> setCancel, Func<AgentEvent, bool> events, CancellationToken token, AgentWork work)
        {
            using (var cancel = new CancelFlag(token))
            {
                setCancel(cancel.Handle);
                if (events == null) return Run(IntPtr.Zero, IntPtr.Zero, token, work);
                long desk = Desk.Open();
                Exception thrown = null;
                Thread teller = null;
                Result result = null;
                ExceptionDispatchInfo failure = null;
                try
                {
                    teller = Desk.Start(() => Tell(desk, events, ref thrown));
                    result = Run((IntPtr)Native.gen_binding_desk_event_function(), (IntPtr)desk, token, work);
                }
                catch (Exception e)
                {
                    failure = ExceptionDispatchInfo.Capture(e);
                }
                finally
                {
                    Native.gen_binding_desk_close(desk);
                    if (teller != null) teller.Join();
                }
                if (thrown != null) ExceptionDispatchInfo.Capture(thrown).Throw();
                if (failure != null) failure.Throw();
                return result;
            }
        }

        static void Tell(long desk, Func<AgentEvent, bool> events, ref Exception thrown)
        {
            for (Matter matter = Matter.Next(desk); matter != null; matter = Matter.Next(desk))
            {
                bool on = false;
                try
                {
                    on = thrown == null && events(new AgentEvent(matter));
                }
                catch (Exception e)
                {
                    thrown = e;
                }
                finally
                {
                    matter.Answer("", !on);
                }
            }
        }

        static Result Run(IntPtr callback, IntPtr user, CancellationToken token, AgentWork work)
        {
            IntPtr result = IntPtr.Zero;
            try
            {
                work(callback, user, out result);
            }
            catch (GenerationCanceledException e)
            {
                throw Call.Canceled(e, Result.Take(result), token);
            }
            catch (GenerateException e)
            {
                e.Result = Result.Take(result);
                throw;
            }
            return Result.Take(result);
        }
    }

    /// <summary>
    /// A conversation in which a model calls tools until it has an answer. One thread at a time, a second one gets Status.Busy.
    /// </summary>
    public sealed class Agent : NativeObject
    {
        /// <summary>An agent whose answers the generator writes; null: for steps with the outputs of a model of one's own.</summary>
        public Agent(Generator generator, Tools tools, AgentOptions options = null)
            : base(Make(generator, tools, options))
        {
            Chat = new Chat(new Handle(Handle, HandleKind.Chat, Native.gen_agent_chat(Handle)));
        }

        static Handle Make(Generator generator, Tools tools, AgentOptions options)
        {
            Loader.Ensure();
            if (tools == null) throw new ArgumentNullException("tools");
            using (Handle native = options?.ToNative())
            {
                IntPtr agent;
                Native.gen_agent_new(Of(generator), tools.Handle, native, out agent);
                return new Handle(HandleKind.Agent, agent);
            }
        }

        /// <summary>The conversation, with calls and their results. It is disposed of with the agent.</summary>
        public Chat Chat { get; }

        /// <summary>
        /// Gives the agent a task; null goes on with the conversation as it is. Events hear of what happens, on another thread;
        /// false ends the run.
        /// </summary>
        public Result Run(string task, Func<AgentEvent, bool> events = null,
                          CancellationToken cancellationToken = default(CancellationToken))
        {
            byte[] text = task != null ? Utf8.Bytes(task) : null;
            return AgentCall.Run(SetCancel, events, cancellationToken, (IntPtr callback, IntPtr user, out IntPtr result) =>
                Native.gen_agent_run(Handle, text, Utf8.Length(text), callback, user, out result));
        }

        /// <summary>The same on a separate thread.</summary>
        public Task<Result> RunAsync(string task, Func<AgentEvent, bool> events = null,
                                     CancellationToken cancellationToken = default(CancellationToken))
        {
            return Background.Run(() => Run(task, events, cancellationToken), cancellationToken);
        }

        /// <summary>
        /// Runs one step, with the output of a model of one's own or, for null, with a generated one: whether it was the last.
        /// </summary>
        public bool Step(string output = null, CancellationToken cancellationToken = default(CancellationToken))
        {
            byte[] text = output != null ? Utf8.Bytes(output) : null;
            var finished = new int[1];
            AgentCall.Run(SetCancel, null, cancellationToken, (IntPtr callback, IntPtr user, out IntPtr result) =>
            {
                result = IntPtr.Zero;
                Native.gen_agent_step(Handle, text, Utf8.Length(text), callback, user, finished);
            });
            return finished[0] != 0;
        }

        void SetCancel(Handle flag)
        {
            Native.gen_agent_set_cancel(Handle, flag);
        }

        /// <summary>The last run as JSON; see gen_agent_describe.</summary>
        public string Describe()
        {
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_agent_describe(Handle, buf, capacity, out n));
        }

        /// <summary>Empties the conversation and forgets the last run.</summary>
        public void Reset()
        {
            Native.gen_agent_reset(Handle);
        }

        /// <summary>Gives the agent up. What runs on it is cancelled.</summary>
        public override void Dispose()
        {
            try
            {
                if (!IsDisposed) Native.gen_agent_cancel(Handle);
            }
            catch (ObjectDisposedException)
            {
                // another thread was faster
            }
            base.Dispose();
        }
    }

    /// <summary>Several agents on one task: the first one gets it, and the others are tools to it. One thread at a time.</summary>
    public sealed class Supervisor : NativeObject
    {
        /// <summary>One without agents.</summary>
        public Supervisor()
            : base(Make())
        {
        }

        static Handle Make()
        {
            Loader.Ensure();
            IntPtr supervisor;
            Native.gen_supervisor_new(out supervisor);
            return new Handle(HandleKind.Supervisor, supervisor);
        }

        /// <summary>Adds an agent.</summary>
        public Supervisor Add(string name, string description, Agent agent)
        {
            if (name == null) throw new ArgumentNullException("name");
            if (agent == null) throw new ArgumentNullException("agent");
            Native.gen_supervisor_add_agent(Handle, Utf8.Terminated(name, "name"), Utf8.Terminated(description, "description"),
                                            agent.Handle);
            return this;
        }

        /// <summary>Limits the tokens of all agents in a run; 0: no limit.</summary>
        public Supervisor SetBudget(long tokens)
        {
            Native.gen_supervisor_set_budget(Handle, tokens);
            return this;
        }

        /// <summary>Gives the first agent a task, as Agent.Run.</summary>
        public Result Run(string task, Func<AgentEvent, bool> events = null,
                          CancellationToken cancellationToken = default(CancellationToken))
        {
            if (task == null) throw new ArgumentNullException("task");
            byte[] text = Utf8.Bytes(task);
            return AgentCall.Run(flag => Native.gen_supervisor_set_cancel(Handle, flag), events, cancellationToken,
                (IntPtr callback, IntPtr user, out IntPtr result) =>
                    Native.gen_supervisor_run(Handle, text, Utf8.Length(text), callback, user, out result));
        }

        /// <summary>The last run as JSON; see gen_supervisor_describe.</summary>
        public string Describe()
        {
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_supervisor_describe(Handle, buf, capacity, out n));
        }

        /// <summary>Gives the supervisor up. What runs on it is cancelled.</summary>
        public override void Dispose()
        {
            try
            {
                if (!IsDisposed) Native.gen_supervisor_cancel(Handle);
            }
            catch (ObjectDisposedException)
            {
                // another thread was faster
            }
            base.Dispose();
        }
    }
}
