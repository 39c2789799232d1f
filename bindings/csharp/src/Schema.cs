// SPDX-License-Identifier: Apache-2.0
// JSON Schemas of classes, for Grammar.JsonSchema.
using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Reflection;
using System.Text;

namespace LibGenerate
{
    /// <summary>JSON Schemas of classes.</summary>
    public sealed class Schema
    {
        readonly Dictionary<Type, string> names = new Dictionary<Type, string>();
        readonly List<string> definitions = new List<string>();

        Schema()
        {
        }

        /// <summary>
        /// Of the JSON objects that hold the public properties of T that can be read and set, all of them and no others. A
        /// Nullable may be null, or not be there. Names are those of the properties, or those that attributes of
        /// serializers give (DataMember, JsonPropertyName, JsonProperty); what IgnoreDataMember or JsonIgnore marks is left
        /// out. Numbers have the bounds of their type, enums are the names of their values, arrays
        /// and collections are lists, dictionaries by strings are objects, and an object is any value. Classes may be
        /// recursive. It is a schema of draft 4, whose integers are written without fraction and exponent. An
        /// ArgumentException names the property that JSON has no form for.
        /// </summary>
        public static string Of<T>()
        {
            return Of(typeof(T));
        }

        /// <summary>The same of a type.</summary>
        public static string Of(Type type)
        {
            if (type == null) throw new ArgumentNullException("type");
            var all = new Schema();
            string schema = all.Make(type);
            return "{\"$schema\":\"http://json-schema.org/draft-04/schema#\",\"allOf\":[" + schema + "],\"definitions\":{" +
                string.Join(",", all.definitions) + "}}";
        }

        static string Whole(object least, object most)
        {
            return string.Format(CultureInfo.InvariantCulture, "{{\"type\":\"integer\",\"minimum\":{0},\"maximum\":{1}}}", least, most);
        }

        static Type Argument(Type type, Type wanted)
        {
            return type.GetInterfaces().Concat(new[] { type })
                .Where(one => one.IsGenericType && one.GetGenericTypeDefinition() == wanted)
                .Select(one => one.GetGenericArguments().Last()).FirstOrDefault();
        }

        string Make(Type type)
        {
            Type inner = Nullable.GetUnderlyingType(type);
            if (inner != null) return "{\"anyOf\":[" + Make(inner) + ",{\"type\":\"null\"}]}";
            if (type.IsEnum) return "{\"enum\":[" + string.Join(",", Enum.GetNames(type).Select(Quoted)) + "]}";
            switch (Type.GetTypeCode(type))
            {
                case TypeCode.Boolean: return "{\"type\":\"boolean\"}";
                case TypeCode.SByte: return Whole(sbyte.MinValue, sbyte.MaxValue);
                case TypeCode.Byte: return Whole(byte.MinValue, byte.MaxValue);
                case TypeCode.Int16: return Whole(short.MinValue, short.MaxValue);
                case TypeCode.UInt16: return Whole(ushort.MinValue, ushort.MaxValue);
                case TypeCode.Int32: return Whole(int.MinValue, int.MaxValue);
                case TypeCode.UInt32: return Whole(uint.MinValue, uint.MaxValue);
                case TypeCode.Int64: return Whole(long.MinValue, long.MaxValue);
                case TypeCode.UInt64: return Whole(ulong.MinValue, ulong.MaxValue);
                case TypeCode.Single: return "{\"type\":\"number\",\"minimum\":-3e38,\"maximum\":3e38}";
                case TypeCode.Double: return "{\"type\":\"number\",\"minimum\":-1e308,\"maximum\":1e308}";
                case TypeCode.Decimal: return "{\"type\":\"number\",\"minimum\":-79e27,\"maximum\":79e27}";
                case TypeCode.Char: return "{\"type\":\"string\",\"minLength\":1,\"maxLength\":1}";
                case TypeCode.String: return "{\"type\":\"string\"}";
                case TypeCode.DateTime: return "{\"type\":\"string\",\"format\":\"date-time\"}";
            }
            if (type == typeof(object)) return "{}";
            if (type == typeof(Guid)) return "{\"type\":\"string\",\"format\":\"uuid\"}";
            if (type == typeof(DateTimeOffset)) return "{\"type\":\"string\",\"format\":\"date-time\"}";
            Type value = Argument(type, typeof(IDictionary<,>));
            if (value != null) return "{\"type\":\"object\",\"additionalProperties\":" + Make(value) + "}";
            Type item = type.IsArray ? type.GetElementType() : Argument(type, typeof(IEnumerable<>));
            if (item != null) return "{\"type\":\"array\",\"items\":" + Make(item) + "}";
            if (type.IsInterface || type.IsPointer || typeof(Delegate).IsAssignableFrom(type) || typeof(IEnumerable).IsAssignableFrom(type))
            {
                throw new ArgumentException(type + " has no form in JSON");
            }
            string name;
            if (!names.TryGetValue(type, out name))
            {
                name = "t" + names.Count;
                names.Add(type, name);
                definitions.Add(Quoted(name) + ":" + Members(type));
            }
            return "{\"$ref\":\"#/definitions/" + name + "\"}";
        }

        string Members(Type type)
        {
            var properties = new List<string>();
            var required = new List<string>();
            foreach (PropertyInfo property in type.GetProperties(BindingFlags.Public | BindingFlags.Instance))
            {
                if (!property.CanRead || !property.CanWrite || property.GetIndexParameters().Length > 0) continue;
                string given = NameOf(property);
                if (given == null) continue;
                string name = Quoted(given);
                try
                {
                    properties.Add(name + ":" + Make(property.PropertyType));
                }
                catch (ArgumentException wrong)
                {
                    throw new ArgumentException(type.Name + "." + property.Name + ": " + wrong.Message, wrong);
                }
                if (Nullable.GetUnderlyingType(property.PropertyType) == null) required.Add(name);
            }
            string all = required.Count == 0 ? "" : ",\"required\":[" + string.Join(",", required) + "]";
            return "{\"type\":\"object\",\"properties\":{" + string.Join(",", properties) + "}" + all +
                ",\"additionalProperties\":false}";
        }

        // Null for one that is left out. Attributes go by their names: no serializer is needed for it.
        static string NameOf(PropertyInfo property)
        {
            foreach (Attribute attribute in Attribute.GetCustomAttributes(property, true))
            {
                Type type = attribute.GetType();
                if (type.Name == "IgnoreDataMemberAttribute" || type.Name == "JsonIgnoreAttribute") return null;
                if (type.Name != "DataMemberAttribute" && type.Name != "JsonPropertyNameAttribute" && type.Name != "JsonPropertyAttribute") continue;
                PropertyInfo name = type.GetProperty(type.Name == "JsonPropertyAttribute" ? "PropertyName" : "Name");
                var text = name == null ? null : name.GetValue(attribute, null) as string;
                if (text != null) return text;
            }
            return property.Name;
        }

        static string Quoted(string text)
        {
            var made = new StringBuilder("\"");
            foreach (char c in text)
            {
                if (c == '"' || c == '\\') made.Append('\\').Append(c);
                else if (c < ' ') made.AppendFormat(CultureInfo.InvariantCulture, "\\u{0:x4}", (int)c);
                else made.Append(c);
            }
            return made.Append('"').ToString();
        }
    }
}
