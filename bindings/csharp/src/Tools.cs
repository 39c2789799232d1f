// SPDX-License-Identifier: Apache-2.0
// Functions that a model may call.
using System;
using System.Collections.Concurrent;
using System.Text;

namespace LibGenerate
{
    /// <summary>A call that a model makes.</summary>
    public sealed class ToolCall
    {
        readonly Matter matter;

        internal ToolCall(Matter matter)
        {
            this.matter = matter;
        }

        /// <summary>Unique in its conversation.</summary>
        public string Id
        {
            get { return matter.Id; }
        }

        /// <summary>Of the tool.</summary>
        public string Name
        {
            get { return matter.Name; }
        }

        /// <summary>A JSON object that fits the tool's schema.</summary>
        public string Arguments
        {
            get { return matter.Text; }
        }

        /// <summary>Whether nobody waits for the output any more. Only while the function runs.</summary>
        public bool Stopped
        {
            get { return matter.Stopped; }
        }
    }

    /// <summary>Functions that a model may call. Threads and agents share one. Calls that come after Dispose fail.</summary>
    public sealed class Tools : NativeObject
    {
        const int MostOfAResult = 1 << 20;

        // The serving thread keeps this, and nothing of the object: one that is dropped can be collected.
        sealed class Served
        {
            internal readonly long Desk = LibGenerate.Desk.Open();
            internal readonly ConcurrentDictionary<string, Func<ToolCall, string>> Functions =
                new ConcurrentDictionary<string, Func<ToolCall, string>>();

            internal void Serve()
            {
                for (Matter matter = Matter.Next(Desk); matter != null; matter = Matter.Next(Desk))
                {
                    Matter call = matter;
                    try
                    {
                        LibGenerate.Desk.Start(() => Run(call));
                    }
                    catch (Exception e)
                    {
                        call.Answer("there is no thread for it: " + e.Message, true);
                    }
                }
            }

            void Run(Matter matter)
            {
                string output = "";
                bool failed = true;
                try
                {
                    Func<ToolCall, string> function;
                    if (!Functions.TryGetValue(matter.Name, out function))
                    {
                        output = "tool \"" + matter.Name + "\" not found";
                    }
                    else
                    {
                        output = function(new ToolCall(matter));
                        failed = output == null;
                        if (failed) output = "tool \"" + matter.Name + "\" gave null";
                    }
                }
                catch (Exception e)
                {
                    output = e.Message;
                }
                finally
                {
                    matter.Answer(output, failed);
                }
            }
        }

        readonly Served served;

        /// <summary>An empty set.</summary>
        public Tools()
            : base(Make())
        {
            served = new Served();
            Handle.Desk = served.Desk;
            Desk.Start(served.Serve);
        }

        static Handle Make()
        {
            Loader.Ensure();
            IntPtr registry;
            Native.gen_tool_registry_new(out registry);
            return new Handle(HandleKind.Tools, registry);
        }

        /// <summary>
        /// Adds a tool. The schema of its arguments is JSON Schema; null: it has none. An exception is a failure that the model
        /// is told. The function runs on a thread of its own, several at once.
        /// </summary>
        public Tools Add(string name, string description, string schema, Func<ToolCall, string> function)
        {
            if (name == null) throw new ArgumentNullException("name");
            if (function == null) throw new ArgumentNullException("function");
            lock (served)
            {
                Native.gen_tool_registry_add(Handle, Utf8.Terminated(name, "name"), Utf8.Terminated(description, "description"),
                                             Utf8.Terminated(schema, "schema"), (IntPtr)Native.gen_binding_desk_tool_function(),
                                             (IntPtr)served.Desk);
                served.Functions[name] = function;
            }
            return this;
        }

        /// <summary>Adds a tool whose arguments are the properties of a class: the schema is Schema.Of.</summary>
        public Tools Add<T>(string name, string description, Func<ToolCall, string> function)
        {
            return Add(name, description, Schema.Of<T>(), function);
        }

        /// <summary>Removes a tool. A call of it that runs finishes.</summary>
        public Tools Remove(string name)
        {
            if (name == null) throw new ArgumentNullException("name");
            lock (served)
            {
                Native.gen_tool_registry_remove(Handle, Utf8.Terminated(name, "name"));
                Func<ToolCall, string> gone;
                served.Functions.TryRemove(name, out gone);
            }
            return this;
        }

        /// <summary>The number of tools.</summary>
        public int Count
        {
            get { return (int)Native.gen_tool_registry_count(Handle); }
        }

        /// <summary>All tools as JSON, in the form of OpenAI's API, sorted by name.</summary>
        public string Describe()
        {
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_tool_registry_describe(Handle, buf, capacity, out n));
        }

        /// <summary>One tool as JSON.</summary>
        public string Describe(string name)
        {
            byte[] key = Utf8.Terminated(name, "name");
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_tool_registry_get(Handle, key, buf, capacity, out n));
        }

        /// <summary>
        /// Calls a tool as an agent does: the result is {"tool_call_id":…,"output":…,"is_error":…}, at most a MiB.
        /// </summary>
        public string Call(string id, string name, string arguments)
        {
            byte[] json = Utf8.Bytes(arguments ?? "");
            var buf = new byte[MostOfAResult];
            long n;
            Native.gen_tool_registry_call(Handle, Utf8.Terminated(id, "id"), Utf8.Terminated(name, "name"), json,
                                          Utf8.Length(json), buf, buf.Length, out n);
            return Encoding.UTF8.GetString(buf, 0, (int)n);
        }

        /// <summary>
        /// The calls in a text that a model wrote, as JSON; see gen_tool_calls_parse. A format that is null is "json".
        /// </summary>
        public static string ParseCalls(string format, string text)
        {
            if (text == null) throw new ArgumentNullException("text");
            Loader.Ensure();
            byte[] name = Utf8.Terminated(format, "format");
            byte[] bytes = Utf8.Bytes(text);
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_tool_calls_parse(name, bytes, Utf8.Length(bytes), buf, capacity, out n));
        }

        /// <summary>A result as JSON.</summary>
        public static string FormatResult(string id, string output, bool isError)
        {
            if (output == null) throw new ArgumentNullException("output");
            Loader.Ensure();
            byte[] number = Utf8.Terminated(id, "id");
            byte[] bytes = Utf8.Bytes(output);
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_tool_result_format(number, bytes, Utf8.Length(bytes), isError ? 1 : 0, buf, capacity, out n));
        }
    }
}
