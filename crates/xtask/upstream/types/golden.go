package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// renderGolden writes objects of every kind, one on a line: version, kind and variant; JSON; the JSON
// and the protobuf of the object read from that; the JSON of the object read from the protobuf. JSON
// that is the same as the one before is an equals sign. Kinds that have no protobuf have a dash there.
func renderGolden(kinds []kind) string {
	var out strings.Builder
	for _, kind := range kinds {
		for _, variant := range []string{"zero", "full", "hollow", "sparse"} {
			object := reflect.New(kind.goType)
			filler := filler{variant: variant}
			filler.structOf(object.Elem())
			renderPair(&out, kind, variant, object.Interface().(runtime.Object))
		}
	}
	return out.String()
}

var (
	jsonSerializer = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{})

	protoSerializer    runtime.Serializer = protobuf.NewSerializer(scheme, scheme)
	rawProtoSerializer runtime.Serializer = protobuf.NewRawSerializer(scheme, scheme)
)

func renderPair(out *strings.Builder, kind kind, variant string, object runtime.Object) {
	object.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind)
	text := encode(jsonSerializer, object)
	read := decode(jsonSerializer, kind, text)
	normal := encode(jsonSerializer, read)
	fmt.Fprintf(out, "%s %s %s\t%s\t%s", kind.GroupVersion(), kind.Kind, variant, text, unlessSame(normal, text))
	if _, ok := object.(runtime.ProtobufMarshaller); !ok {
		fmt.Fprintln(out, "\t-\t-")
		return
	}
	serializer := protoSerializer
	if _, ok := object.(*metav1.WatchEvent); ok {
		// It is a frame of a stream, not an object.
		serializer = rawProtoSerializer
	}
	wire := encode(serializer, read)
	back := encode(jsonSerializer, decode(serializer, kind, wire))
	fmt.Fprintf(out, "\t%s\t%s\n", base64.StdEncoding.EncodeToString(wire), unlessSame(back, normal))
}

func unlessSame(text, other []byte) []byte {
	if bytes.Equal(text, other) {
		return []byte("=")
	}
	return text
}

func encode(serializer runtime.Encoder, object runtime.Object) []byte {
	var buffer bytes.Buffer
	must(serializer.Encode(object, &buffer))
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}

func decode(serializer runtime.Decoder, kind kind, data []byte) runtime.Object {
	into := reflect.New(kind.goType).Interface().(runtime.Object)
	object, _, err := serializer.Decode(data, nil, into)
	must(err)
	if object.GetObjectKind().GroupVersionKind().Empty() {
		object.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind)
	}
	return object
}

// filler sets the fields of an object: none (zero), each to something (full), each pointer to a
// zero value and each collection to an empty one (hollow), each collection to zero elements (sparse).
type filler struct {
	variant string
	// Counts the values set, so that neighbours differ.
	count int
	// The structs around the one being filled.
	around []reflect.Type
}

func (f *filler) structOf(v reflect.Value) {
	if f.variant == "zero" || f.nested(v.Type()) {
		return
	}
	f.around = append(f.around, v.Type())
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "TypeMeta" {
			f.value(v.Field(i))
		}
	}
	f.around = f.around[:len(f.around)-1]
}

// nested stops at the second level of a type that contains itself, and at lists of kinds, whose
// elements have lines of their own.
func (f *filler) nested(t reflect.Type) bool {
	seen := 0
	for _, outer := range f.around {
		if outer == t {
			seen++
		}
	}
	_, isKind := t.FieldByName("TypeMeta")
	return seen > 1 || isKind && len(f.around) > 0
}

func (f *filler) value(v reflect.Value) {
	f.count++
	if f.special(v) {
		return
	}
	full := f.variant == "full"
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if v.Elem().Kind() == reflect.Struct || full {
			f.value(v.Elem())
		}
	case reflect.Struct:
		f.structOf(v)
	case reflect.Slice:
		f.slice(v)
	case reflect.Map:
		f.mapOf(v)
	case reflect.Interface:
		v.Set(reflect.ValueOf(f.text()))
	case reflect.String:
		if full {
			v.SetString(f.text())
		}
	case reflect.Bool:
		v.SetBool(full)
	case reflect.Int32:
		if full {
			v.SetInt(int64(f.count) * []int64{1, -1, 1 << 16}[f.count%3])
		}
	case reflect.Int64:
		if full {
			v.SetInt(int64(f.count) * []int64{1, -1, 1 << 40}[f.count%3])
		}
	case reflect.Float64:
		if full {
			v.SetFloat(float64(f.count) * []float64{1, -0.125, 1e21}[f.count%3])
		}
	default:
		must(fmt.Errorf("%s cannot be filled", v.Type()))
	}
}

func (f *filler) slice(v reflect.Value) {
	t := v.Type()
	if t.Elem().Kind() == reflect.Uint8 {
		v.SetBytes([]byte{})
		if f.variant == "full" {
			v.SetBytes([]byte(f.text() + "\x00\xff"))
		}
		return
	}
	v.Set(reflect.MakeSlice(t, 0, 2))
	if f.variant == "hollow" {
		return
	}
	length := 2
	if t.Elem().Kind() == reflect.Struct && f.variant == "full" {
		length = 1
	}
	for range length {
		element := reflect.New(t.Elem()).Elem()
		if f.variant == "full" {
			f.value(element)
		}
		v.Set(reflect.Append(v, element))
	}
}

func (f *filler) mapOf(v reflect.Value) {
	t := v.Type()
	v.Set(reflect.MakeMap(t))
	if f.variant == "hollow" {
		return
	}
	// Not in the order in which they must be written.
	for _, key := range []string{"b", "", "a/b"} {
		element := reflect.New(t.Elem()).Elem()
		if f.variant == "full" {
			f.value(element)
		}
		v.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), element)
	}
}

func (f *filler) text() string {
	return fmt.Sprintf("é%d", f.count)
}

// special sets the types whose Go fields are not theirs to fill.
func (f *filler) special(v reflect.Value) bool {
	if !special[v.Type()] {
		return false
	}
	if f.variant != "full" {
		// Raw JSON of nothing is not JSON, and half of these types cannot be written when empty.
		f.fallback(v)
		return true
	}
	odd := f.count%2 == 1
	at := time.Unix(1700000000+int64(f.count), 123456789).UTC()
	switch into := v.Addr().Interface().(type) {
	case *metav1.Time:
		into.Time = at
	case *metav1.MicroTime:
		into.Time = at
	case *metav1.Duration:
		into.Duration = time.Duration(f.count) * 1234567891
	case *resource.Quantity:
		*into = resource.MustParse([]string{"1500m", "2Gi", "12e6", "-3"}[f.count%4])
	case *intstr.IntOrString:
		*into = intstr.FromInt32(int32(f.count))
		if odd {
			*into = intstr.FromString(f.text())
		}
	case *runtime.RawExtension:
		into.Raw = []byte(`{"apiVersion":"example.com/v1","kind":"Any","z":1,"a":[1.5,null,"x"]}`)
	case *metav1.FieldsV1:
		into.Raw = []byte(`{"f:spec":{"f:a":{},".":{}}}`)
	case *apiextensionsv1.JSON:
		into.Raw = []byte(`{"z":1,"a":[true,null]}`)
	case *apiextensionsv1beta1.JSON:
		into.Raw = []byte(`"text"`)
	default:
		f.alternative(v, odd)
	}
	return true
}

// fallback fills what has to be JSON with the least that is.
func (f *filler) fallback(v reflect.Value) {
	switch into := v.Addr().Interface().(type) {
	case *metav1.FieldsV1:
		into.Raw = []byte(`{}`)
	case *apiextensionsv1.JSON:
		into.Raw = []byte(`0`)
	case *apiextensionsv1beta1.JSON:
		into.Raw = []byte(`false`)
	}
}

// alternative fills a schema or what may stand in its place.
func (f *filler) alternative(v reflect.Value, odd bool) {
	if odd {
		schema := v.FieldByName("Schema")
		schema.Set(reflect.New(schema.Type().Elem()))
		f.structOf(schema.Elem())
		if allows := v.FieldByName("Allows"); allows.IsValid() {
			allows.SetBool(true)
		}
		return
	}
	switch into := v.Addr().Interface().(type) {
	case *apiextensionsv1.JSONSchemaPropsOrArray:
		into.JSONSchemas = []apiextensionsv1.JSONSchemaProps{{Type: "string"}, {}}
	case *apiextensionsv1.JSONSchemaPropsOrBool:
		into.Allows = f.count%4 == 0
	case *apiextensionsv1.JSONSchemaPropsOrStringArray:
		into.Property = []string{f.text(), ""}
	case *apiextensionsv1beta1.JSONSchemaPropsOrArray:
		into.JSONSchemas = []apiextensionsv1beta1.JSONSchemaProps{{Type: "string"}, {}}
	case *apiextensionsv1beta1.JSONSchemaPropsOrBool:
		into.Allows = f.count%4 == 0
	case *apiextensionsv1beta1.JSONSchemaPropsOrStringArray:
		into.Property = []string{f.text(), ""}
	}
}

func compress(content []byte) []byte {
	var buffer bytes.Buffer
	writer, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	must(err)
	_, err = writer.Write(content)
	must(err)
	must(writer.Close())
	return buffer.Bytes()
}

func decompress(packed []byte) []byte {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	must(err)
	content, err := io.ReadAll(reader)
	must(err)
	return content
}
