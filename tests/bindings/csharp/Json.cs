// SPDX-License-Identifier: Apache-2.0
// Reads JSON, as much of it as the table of expected results has.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Text;

/// <summary>A value: object, array, text, number or truth.</summary>
sealed class Json
{
    internal readonly Dictionary<string, Json> Members = new Dictionary<string, Json>();
    internal readonly List<Json> Items = new List<Json>();
    internal string Text;
    internal double Number;
    internal bool Truth;

    internal Json this[string name]
    {
        get { return Members[name]; }
    }

    internal int Integer
    {
        get { return (int)Number; }
    }

    internal int[] Integers
    {
        get { return Items.ConvertAll(item => item.Integer).ToArray(); }
    }

    internal bool Same(Json other)
    {
        return Text == other.Text && Number == other.Number && Truth == other.Truth
            && Items.Count == other.Items.Count && Members.Count == other.Members.Count
            && Items.Zip(other.Items, (one, two) => one.Same(two)).All(same => same)
            && Members.All(member => other.Members.ContainsKey(member.Key) && member.Value.Same(other[member.Key]));
    }

    internal static Json Parse(string text)
    {
        int at = 0;
        return Value(text, ref at);
    }

    static char Skip(string text, ref int at)
    {
        while (char.IsWhiteSpace(text[at])) ++at;
        return text[at];
    }

    static Json Value(string text, ref int at)
    {
        var value = new Json();
        char first = Skip(text, ref at);
        if (first == '{' || first == '[')
        {
            ++at;
            char end = first == '{' ? '}' : ']';
            while (Skip(text, ref at) != end)
            {
                if (text[at] == ',')
                {
                    ++at;
                    Skip(text, ref at);
                }
                if (first == '[')
                {
                    value.Items.Add(Value(text, ref at));
                    continue;
                }
                string name = Quoted(text, ref at);
                if (Skip(text, ref at) != ':') throw new FormatException("no colon at " + at);
                ++at;
                value.Members[name] = Value(text, ref at);
            }
            ++at;
        }
        else if (first == '"')
        {
            value.Text = Quoted(text, ref at);
        }
        else
        {
            int begin = at;
            while (at < text.Length && ",]} \r\n\t".IndexOf(text[at]) < 0) ++at;
            string word = text.Substring(begin, at - begin);
            value.Truth = word == "true";
            if (word != "true" && word != "false" && word != "null")
            {
                value.Number = double.Parse(word, CultureInfo.InvariantCulture);
            }
        }
        return value;
    }

    static string Quoted(string text, ref int at)
    {
        var result = new StringBuilder();
        for (++at; text[at] != '"'; ++at)
        {
            if (text[at] != '\\')
            {
                result.Append(text[at]);
                continue;
            }
            char escaped = text[++at];
            if (escaped == 'u')
            {
                result.Append((char)int.Parse(text.Substring(at + 1, 4), NumberStyles.HexNumber));
                at += 4;
            }
            else
            {
                int known = "nrtbf".IndexOf(escaped);
                result.Append(known < 0 ? escaped : "\n\r\t\b\f"[known]);
            }
        }
        ++at;
        return result.ToString();
    }
}
