// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// SchemaOf gives the JSON Schema of the texts that encoding/json decodes into a T as they are: names and "omitempty" from
// tags, all other fields required, in the order of the struct, and no others. Whole numbers have the bounds of their type,
// pointers may be null, a []byte is base64, a time.Time a date and time, any and json.RawMessage any value. Types may be
// recursive. It is a schema of draft 4, whose integers are written without fraction and exponent, as encoding/json wants
// them. What JSON cannot hold (channels, functions, maps by anything but strings) is an error that names the field.
// NewSchemaGrammar takes it, and fields then come in their order.
func SchemaOf[T any]() (string, error) {
	return schemaOf(reflect.TypeOf((*T)(nil)).Elem())
}

func schemaOf(t reflect.Type) (string, error) {
	w := schemaWriter{names: map[reflect.Type]string{}}
	schema, err := w.schema(t)
	if err != nil {
		return "", err
	}
	return `{"$schema":"http://json-schema.org/draft-04/schema#","allOf":[` + schema + `],"definitions":{` +
		strings.Join(w.definitions, ",") + `}}`, nil
}

type schemaWriter struct {
	names       map[reflect.Type]string // of structs
	definitions []string
}

var (
	timeType      = reflect.TypeOf(time.Time{})
	rawType       = reflect.TypeOf(json.RawMessage{})
	numberType    = reflect.TypeOf(json.Number(""))
	marshalerType = reflect.TypeOf((*json.Marshaler)(nil)).Elem()
)

func (w *schemaWriter) schema(t reflect.Type) (string, error) {
	switch t {
	case timeType:
		// What time.Time reads: UTC with a capital Z, no leap seconds.
		return `{"type":"string","format":"date-time","pattern":"^[0-9-]{10}T[0-9:]{6}[0-5][0-9](\\.[0-9]{1,9})?Z$"}`, nil
	case rawType:
		return `{}`, nil
	case numberType:
		return `{"type":"number"}`, nil
	}
	named := t.Kind() != reflect.Interface && t.Kind() != reflect.Pointer
	if named && (t.Implements(marshalerType) || reflect.PointerTo(t).Implements(marshalerType)) {
		return "", fmt.Errorf("%v writes its JSON itself", t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return `{"type":"boolean"}`, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		most := uint64(1)<<(t.Bits()-1) - 1
		return fmt.Sprintf(`{"type":"integer","minimum":-%d,"maximum":%d}`, most+1, most), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return fmt.Sprintf(`{"type":"integer","minimum":0,"maximum":%d}`, ^uint64(0)>>(64-t.Bits())), nil
	case reflect.Float64:
		return `{"type":"number","minimum":-1e308,"maximum":1e308}`, nil
	case reflect.Float32:
		return `{"type":"number","minimum":-3e38,"maximum":3e38}`, nil
	case reflect.String:
		return `{"type":"string"}`, nil
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return "", fmt.Errorf("%v is an interface with methods", t)
		}
		return `{}`, nil
	case reflect.Pointer:
		schema, err := w.schema(t.Elem())
		return `{"anyOf":[` + schema + `,{"type":"null"}]}`, err
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return `{"type":"string","pattern":"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"}`, nil
		}
		items, err := w.schema(t.Elem())
		if t.Kind() == reflect.Array {
			items += fmt.Sprintf(`,"minItems":%d,"maxItems":%d`, t.Len(), t.Len())
		}
		return `{"type":"array","items":` + items + `}`, err
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return "", fmt.Errorf("%v is a map by %v", t, t.Key())
		}
		values, err := w.schema(t.Elem())
		return `{"type":"object","additionalProperties":` + values + `}`, err
	case reflect.Struct:
		return w.reference(t)
	}
	return "", fmt.Errorf("%v has no form in JSON", t)
}

func (w *schemaWriter) reference(t reflect.Type) (string, error) {
	name, known := w.names[t]
	if !known {
		name = "t" + strconv.Itoa(len(w.names))
		w.names[t] = name
		var properties, required []string
		if err := w.fields(t, &properties, &required); err != nil {
			return "", err
		}
		w.definitions = append(w.definitions, `"`+name+`":{"type":"object","properties":{`+strings.Join(properties, ",")+
			`},"required":[`+strings.Join(required, ",")+`],"additionalProperties":false}`)
	}
	return `{"$ref":"#/definitions/` + name + `"}`, nil
}

func (w *schemaWriter) fields(t reflect.Type, properties, required *[]string) error {
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" && options == "" {
			continue
		}
		if field.Anonymous && name == "" {
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				if err := w.fields(inner, properties, required); err != nil {
					return err
				}
				continue
			}
		}
		if !field.IsExported() {
			continue
		}
		if name == "" {
			name = field.Name
		}
		schema, err := w.schema(field.Type)
		if err != nil {
			return fmt.Errorf("field %s: %w", field.Name, err)
		}
		options = "," + options + ","
		if strings.Contains(options, ",string,") {
			return fmt.Errorf("field %s: a number or truth in a string", field.Name)
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return err
		}
		*properties = append(*properties, string(quoted)+":"+schema)
		if !strings.Contains(options, ",omitempty,") {
			*required = append(*required, string(quoted))
		}
	}
	return nil
}
