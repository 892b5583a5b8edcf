package main

import (
	"encoding/json"
	"fmt"
	"log"
	"reflect"
	"sort"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// goStruct is one row of the table.
type goStruct struct {
	goType reflect.Type
	fields []*field
	// OpenAPI says that server-side apply must treat it as one value.
	atomic bool
}

type field struct {
	name      string
	goType    reflect.Type
	json      string
	number    int
	inline    bool
	omitempty bool
	omitzero  bool
	// A list that is a message of its own in protobuf.
	wrapped bool
	patch   []string
	key     string
	openAPI property
}

// special are the types whose JSON is not what their Go fields say. The reader of the table knows
// them by name.
var special = map[reflect.Type]bool{
	reflect.TypeFor[apiextensionsv1.JSON]():                              true,
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():            true,
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():             true,
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray]():      true,
	reflect.TypeFor[apiextensionsv1beta1.JSON]():                         true,
	reflect.TypeFor[apiextensionsv1beta1.JSONSchemaPropsOrArray]():       true,
	reflect.TypeFor[apiextensionsv1beta1.JSONSchemaPropsOrBool]():        true,
	reflect.TypeFor[apiextensionsv1beta1.JSONSchemaPropsOrStringArray](): true,
	reflect.TypeFor[intstr.IntOrString]():                                true,
	reflect.TypeFor[metav1.Duration]():                                   true,
	reflect.TypeFor[metav1.FieldsV1]():                                   true,
	reflect.TypeFor[metav1.MicroTime]():                                  true,
	reflect.TypeFor[metav1.Time]():                                       true,
	reflect.TypeFor[resource.Quantity]():                                 true,
	reflect.TypeFor[runtime.RawExtension]():                              true,
}

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	protoMarshaler  = reflect.TypeFor[interface{ Marshal() ([]byte, error) }]()
)

// types are the named Go types that kinds reach.
type types struct {
	structs map[reflect.Type]*goStruct
	// Named types that are not structs.
	names map[reflect.Type]bool
}

func reflectTypes(kinds []kind) *types {
	reached := &types{map[reflect.Type]*goStruct{}, map[reflect.Type]bool{}}
	for _, kind := range kinds {
		reached.visit(kind.goType)
	}
	return reached
}

func (reached *types) visit(t reflect.Type) {
	if special[t] {
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		reached.visit(t.Elem())
	case reflect.Map:
		reached.visit(t.Key())
		reached.visit(t.Elem())
	case reflect.Struct:
		if reached.structs[t] == nil {
			refuseOwnJSON(t)
			row := &goStruct{goType: t}
			reached.structs[t] = row
			for i := range t.NumField() {
				if field := readField(t, t.Field(i)); field != nil {
					row.fields = append(row.fields, field)
					reached.visit(field.goType)
				}
			}
		}
		return
	case reflect.Bool, reflect.Int32, reflect.Int64, reflect.Float64, reflect.String, reflect.Uint8, reflect.Interface:
	default:
		log.Fatalf("%s: no row can say this kind of Go type", t)
	}
	if t.PkgPath() != "" {
		refuseOwnJSON(t)
		reached.names[t] = true
	}
}

func refuseOwnJSON(t reflect.Type) {
	pointer := reflect.PointerTo(t)
	if pointer.Implements(jsonMarshaler) || pointer.Implements(jsonUnmarshaler) {
		log.Fatalf("%s has a JSON form of its own that the table does not know", t)
	}
}

func readField(parent reflect.Type, f reflect.StructField) *field {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" || !f.IsExported() {
		return nil
	}
	row := &field{name: f.Name, goType: f.Type, json: name}
	for _, option := range strings.Split(options, ",") {
		switch option {
		case "omitempty":
			row.omitempty = true
		case "omitzero":
			row.omitzero = true
		case "", "inline":
		default:
			log.Fatalf("%s.%s: unknown option of json: %s", parent, f.Name, option)
		}
	}
	if name == "" {
		if !f.Anonymous {
			log.Fatalf("%s.%s has no name in JSON", parent, f.Name)
		}
		row.inline = true
	}
	readProtobufTag(f, row)
	if strategy := f.Tag.Get("patchStrategy"); strategy != "" {
		row.patch = strings.Split(strategy, ",")
	}
	row.key = f.Tag.Get("patchMergeKey")
	return row
}

// readProtobufTag takes the number. The wire form follows from the Go type: what some tags say of it
// is not what upstream's generator did.
func readProtobufTag(f reflect.StructField, row *field) {
	tag := f.Tag.Get("protobuf")
	if tag == "" || tag == "-" {
		return
	}
	number, err := strconv.Atoi(strings.Split(tag, ",")[1])
	must(err)
	row.number = number
	row.wrapped = f.Type.Kind() == reflect.Slice && f.Type.Implements(protoMarshaler)
}

func renderTypes(kinds []kind, reached *types) string {
	var out strings.Builder
	for _, kind := range kinds {
		fmt.Fprintf(&out, "kind %s %s %s\n", kind.GroupVersion(), kind.Kind, typeName(kind.goType))
	}
	var all []reflect.Type
	for t := range reached.structs {
		all = append(all, t)
	}
	for t := range reached.names {
		all = append(all, t)
	}
	sort.Slice(all, func(i, j int) bool { return typeName(all[i]) < typeName(all[j]) })
	for _, t := range all {
		if row := reached.structs[t]; row != nil {
			renderStruct(&out, row)
		} else {
			fmt.Fprintf(&out, "type %s %s\n", typeName(t), underlyingName(t))
		}
	}
	return out.String()
}

func renderStruct(out *strings.Builder, row *goStruct) {
	fmt.Fprintf(out, "type %s struct", typeName(row.goType))
	if row.atomic {
		fmt.Fprint(out, " atomic")
	}
	fmt.Fprintln(out)
	for _, f := range row.fields {
		name, number := f.json, "-"
		if f.inline {
			name = "-"
		}
		if f.number != 0 {
			number = strconv.Itoa(f.number)
		}
		fmt.Fprintf(out, "\t%s\t%s\t%s", name, number, typeName(f.goType))
		for _, flag := range []struct {
			set  bool
			name string
		}{{f.omitempty, "omitempty"}, {f.omitzero, "omitzero"}, {f.wrapped, "wrapped"}, {f.openAPI.required, "required"}} {
			if flag.set {
				fmt.Fprintf(out, "\t%s", flag.name)
			}
		}
		for _, fact := range []struct{ name, value string }{
			{"patch", quoteList(f.patch)},
			{"key", f.key},
			{"list", f.openAPI.listType},
			{"keys", quoteList(f.openAPI.listKeys)},
			{"map", f.openAPI.mapType},
			{"enum", quoteList(f.openAPI.enum)},
			{"default", f.openAPI.defaultJSON},
		} {
			if fact.value != "" {
				fmt.Fprintf(out, "\t%s=%s", fact.name, fact.value)
			}
		}
		fmt.Fprintln(out)
	}
}

// typeName is the type as Go writes it, with the whole path of each package.
func typeName(t reflect.Type) string {
	if t.PkgPath() != "" {
		if strings.Contains(t.Name(), "[") {
			log.Fatalf("%s: generic types are not expected", t)
		}
		return t.PkgPath() + "." + t.Name()
	}
	return underlyingName(t)
}

func underlyingName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + typeName(t.Elem())
	case reflect.Slice:
		return "[]" + typeName(t.Elem())
	case reflect.Map:
		return "map[" + typeName(t.Key()) + "]" + typeName(t.Elem())
	case reflect.Interface:
		return "any"
	default:
		return t.Kind().String()
	}
}
