// SPDX-License-Identifier: Apache-2.0
// Conversations, sessions that hold one, and chat templates.
using System;
using System.Globalization;
using System.Threading;
using System.Threading.Tasks;

namespace LibGenerate
{
    /// <summary>
    /// A conversation, rendered as a model was trained to see it, by the chat template of its file. Only what the template
    /// writes becomes special tokens: a message that holds "&lt;|im_end|&gt;" cannot end its turn. One thread at a time, a
    /// second one gets Status.Busy. Of a call that throws nothing has changed.
    /// </summary>
    public sealed class Chat : NativeObject
    {
        /// <summary>An empty conversation.</summary>
        public Chat()
            : base(Make())
        {
        }

        /// <summary>An agent's.</summary>
        internal Chat(Handle handle)
            : base(handle)
        {
        }

        static Handle Make()
        {
            Loader.Ensure();
            IntPtr chat;
            Native.gen_chat_new(out chat);
            return new Handle(HandleKind.Chat, chat);
        }

        /// <summary>Adds a message: "system", "user", "assistant" or whatever the template knows.</summary>
        public Chat Add(string role, string text)
        {
            if (role == null) throw new ArgumentNullException("role");
            if (text == null) throw new ArgumentNullException("text");
            byte[] bytes = Utf8.Bytes(text);
            Native.gen_chat_add(Handle, Utf8.Terminated(role, "role"), bytes, Utf8.Length(bytes));
            return this;
        }

        /// <summary>Sets the author of the last message.</summary>
        public Chat SetName(string name)
        {
            if (name == null) throw new ArgumentNullException("name");
            Native.gen_chat_set_name(Handle, Utf8.Terminated(name, "name"));
            return this;
        }

        /// <summary>Sets the assistant's reasoning before the last message.</summary>
        public Chat SetReasoning(string text)
        {
            if (text == null) throw new ArgumentNullException("text");
            byte[] bytes = Utf8.Bytes(text);
            Native.gen_chat_set_reasoning(Handle, bytes, Utf8.Length(bytes));
            return this;
        }

        /// <summary>
        /// Adds a call of a tool to the assistant's last message, or as a new one without text. The id may be null; the
        /// arguments are a JSON object.
        /// </summary>
        public Chat AddToolCall(string id, string name, string arguments)
        {
            if (name == null) throw new ArgumentNullException("name");
            if (arguments == null) throw new ArgumentNullException("arguments");
            byte[] json = Utf8.Bytes(arguments);
            Native.gen_chat_add_tool_call(Handle, Utf8.Terminated(id, "id"), Utf8.Terminated(name, "name"), json,
                                          Utf8.Length(json));
            return this;
        }

        /// <summary>
        /// Adds the result of a tool call. The id of the call that it answers and the name of the tool may be null.
        /// </summary>
        public Chat AddToolResult(string id, string name, string text)
        {
            if (text == null) throw new ArgumentNullException("text");
            byte[] bytes = Utf8.Bytes(text);
            Native.gen_chat_add_tool_result(Handle, Utf8.Terminated(id, "id"), Utf8.Terminated(name, "name"), bytes,
                                            Utf8.Length(bytes));
            return this;
        }

        /// <summary>
        /// Adds a tool that the model may call: a JSON object in the form of OpenAI's API, {"type": "function", "function":
        /// {"name": …, "description": …, "parameters": a JSON Schema}}.
        /// </summary>
        public Chat AddTool(string description)
        {
            if (description == null) throw new ArgumentNullException("description");
            byte[] json = Utf8.Bytes(description);
            Native.gen_chat_add_tool(Handle, json, Utf8.Length(json));
            return this;
        }

        /// <summary>Sets a variable of the template, such as enable_thinking, to JSON: a string has its quotes.</summary>
        public Chat SetVariable(string name, string value)
        {
            if (name == null) throw new ArgumentNullException("name");
            if (value == null) throw new ArgumentNullException("value");
            byte[] json = Utf8.Bytes(value);
            Native.gen_chat_set_variable(Handle, Utf8.Terminated(name, "name"), json, Utf8.Length(json));
            return this;
        }

        /// <summary>Keeps the first n messages, or removes the last -n, to edit or regenerate them.</summary>
        public Chat Truncate(int n)
        {
            Native.gen_chat_truncate(Handle, n);
            return this;
        }

        /// <summary>Messages, tools and variables as JSON.</summary>
        public string Describe()
        {
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_chat_describe(Handle, buf, capacity, out n));
        }

        /// <summary>
        /// Uses another template than the model's, or a built-in form by its name, "chatml" for example; empty for the
        /// model's own.
        /// </summary>
        public Chat SetTemplate(string text)
        {
            if (text == null) throw new ArgumentNullException("text");
            byte[] bytes = Utf8.Bytes(text);
            Native.gen_chat_set_template(Handle, bytes, Utf8.Length(bytes));
            return this;
        }

        /// <summary>
        /// Sets how a chat session deals with answers, by name: Set("tool_choice", "required"). See gen_chat_set and
        /// DescribeOptions.
        /// </summary>
        public Chat Set(string key, string value)
        {
            Native.gen_chat_set(Handle, Utf8.Terminated(key, "key"), Utf8.Terminated(value, "value"));
            return this;
        }

        /// <summary>The options of Set as JSON.</summary>
        public string DescribeOptions()
        {
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_chat_describe_options(Handle, buf, capacity, out n));
        }

        /// <summary>Sets what templates write as today's date; null for the clock of the machine.</summary>
        public Chat SetTime(DateTime? now)
        {
            string text = now?.ToString("yyyy-MM-ddTHH:mm:ss", CultureInfo.InvariantCulture) ?? "";
            Native.gen_chat_set_time(Handle, Utf8.Bytes(text));
            return this;
        }
    }

    /// <summary>
    /// A conversation with a session that holds it, so that only what is new since the last turn is run. One thread at a time,
    /// a second one gets Status.Busy. With the context policy "shift" a conversation that outgrows the context goes on without
    /// its oldest turns; with "stop" sending fails then.
    /// </summary>
    public sealed class ChatSession : NativeObject
    {
        /// <summary>
        /// Of the conversation so far, or of an empty one. It is shared, not copied: add to it what is not the user's, such as
        /// the results of tools, and find the answers in it. It may be disposed of at any time.
        /// </summary>
        public ChatSession(Generator generator, Chat chat = null)
            : base(Make(generator, chat))
        {
        }

        static Handle Make(Generator generator, Chat chat)
        {
            Loader.Ensure();
            if (generator == null) throw new ArgumentNullException("generator");
            IntPtr session;
            Native.gen_chat_session_new(generator.Handle, Of(chat), out session);
            return new Handle(HandleKind.ChatSession, session);
        }

        /// <summary>
        /// Adds a message of the user to the conversation, generates the answer, and adds that as the assistant's message. An
        /// answer that a limit or a token ended is added as far as it came; where nothing came, and after any other failure,
        /// the conversation is as before.
        /// </summary>
        public Result Send(string text, Sampling sampling = null,
                           CancellationToken cancellationToken = default(CancellationToken))
        {
            if (text == null) throw new ArgumentNullException("text");
            return Run(Utf8.Bytes(text), sampling, cancellationToken);
        }

        /// <summary>The same on a separate thread.</summary>
        public Task<Result> SendAsync(string text, Sampling sampling = null,
                                      CancellationToken cancellationToken = default(CancellationToken))
        {
            return Background.Run(() => Send(text, sampling, cancellationToken), cancellationToken);
        }

        /// <summary>
        /// Sends no message: answers what the conversation ends with, such as the result of a tool, or goes on with the last
        /// answer if that was cut.
        /// </summary>
        public Result Answer(Sampling sampling = null, CancellationToken cancellationToken = default(CancellationToken))
        {
            return Run(null, sampling, cancellationToken);
        }

        /// <summary>
        /// Sends piece by piece; null sends no message, as Answer. The session and the conversation are in use until the stream
        /// is disposed of, which cuts an answer that is not at its end.
        /// </summary>
        public TokenStream Stream(string text, Sampling sampling = null,
                                  CancellationToken cancellationToken = default(CancellationToken))
        {
            byte[] bytes = text != null ? Utf8.Bytes(text) : null;
            return TokenStream.Open((Handle native, out IntPtr stream) =>
                Native.gen_chat_session_open_stream(Handle, bytes, Utf8.Length(bytes), native, out stream),
                sampling, cancellationToken);
        }

        Result Run(byte[] text, Sampling sampling, CancellationToken token)
        {
            return Call.Run(sampling, token, (Handle native, out IntPtr result) =>
                Native.gen_chat_session_send(Handle, text, Utf8.Length(text), native, out result));
        }

        /// <summary>Number of tokens that the session holds.</summary>
        public int Length
        {
            get
            {
                using (new Use(Handle)) return Native.gen_session_length(Session());
            }
        }

        /// <summary>Share of the current prompt that has been run, 0 to 1.</summary>
        public double Progress
        {
            get
            {
                using (new Use(Handle)) return Native.gen_session_progress(Session());
            }
        }

        /// <summary>Gives the chat session up. What runs on it is cancelled, and ends within a token.</summary>
        public override void Dispose()
        {
            try
            {
                if (!IsDisposed) Native.gen_session_cancel(Session());
            }
            catch (ObjectDisposedException)
            {
                // another thread was faster
            }
            base.Dispose();
        }

        /// <summary>
        /// Makes the model end its reasoning and answer, from any thread while a call runs. The option "reasoning_control" of
        /// the conversation must be on.
        /// </summary>
        public void EndReasoning()
        {
            Native.gen_chat_session_end_reasoning(Handle);
        }

        Handle Session()
        {
            return new Handle(Handle, HandleKind.Session, Native.gen_chat_session_session(Handle));
        }
    }

    /// <summary>A chat template by itself, to see how it renders a conversation. Any number of threads share one.</summary>
    public sealed class ChatTemplate : NativeObject
    {
        /// <summary>Compiles a template: Jinja, as the Transformers library evaluates it for chats.</summary>
        public ChatTemplate(string text)
            : base(Make(text))
        {
        }

        internal ChatTemplate(Tokenizer tokenizer)
            : base(Make(tokenizer))
        {
        }

        static Handle Make(string text)
        {
            Loader.Ensure();
            if (text == null) throw new ArgumentNullException("text");
            byte[] bytes = Utf8.Bytes(text);
            IntPtr template;
            Native.gen_template_new(bytes, Utf8.Length(bytes), out template);
            return new Handle(HandleKind.ChatTemplate, template);
        }

        static Handle Make(Tokenizer tokenizer)
        {
            IntPtr template;
            Native.gen_template_from_tokenizer(tokenizer.Handle, out template);
            return new Handle(HandleKind.ChatTemplate, template);
        }

        /// <summary>
        /// Renders a conversation, from JSON to JSON; gen_template_render of template.h lists the members of both.
        /// </summary>
        public string Render(string request)
        {
            if (request == null) throw new ArgumentNullException("request");
            byte[] json = Utf8.Bytes(request);
            return Sized.Text((byte[] buf, long capacity, out long n) =>
                Native.gen_template_render(Handle, json, Utf8.Length(json), buf, capacity, out n));
        }
    }
}
