package main

import (
	"bytes"
	"encoding/json"
	"log"
	"reflect"
	"slices"
	"strings"

	"k8s.io/client-go/discovery"
)

// property is what OpenAPI adds to what Go says of a field.
type property struct {
	known       bool
	required    bool
	listType    string
	listKeys    []string
	mapType     string
	enum        []string
	defaultJSON string
}

// openAPISchema is the part of a schema that the table uses or that must be absent.
type openAPISchema struct {
	Required             []string                  `json:"required"`
	Properties           map[string]*openAPISchema `json:"properties"`
	Items                *openAPISchema            `json:"items"`
	AdditionalProperties *openAPISchema            `json:"additionalProperties"`
	Enum                 []string                  `json:"enum"`
	Default              json.RawMessage           `json:"default"`
	ListType             string                    `json:"x-kubernetes-list-type"`
	ListMapKeys          []string                  `json:"x-kubernetes-list-map-keys"`
	MapType              string                    `json:"x-kubernetes-map-type"`
	Validations          json.RawMessage           `json:"x-kubernetes-validations"`
}

// readOpenAPI gives all schemas of all groups by their names.
func readOpenAPI(server discovery.DiscoveryInterface, groups []group) map[string]*openAPISchema {
	schemas := map[string]*openAPISchema{}
	for _, group := range groups {
		for _, version := range group.versions {
			path := "/openapi/v3/apis/" + group.name + "/" + version.name
			if group.name == "" {
				path = "/openapi/v3/api/" + version.name
			}
			var document struct {
				Components struct {
					Schemas map[string]*openAPISchema `json:"schemas"`
				} `json:"components"`
			}
			get(server.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw, &document)
			for name, schema := range document.Components.Schemas {
				schemas[name] = schema
			}
		}
	}
	return schemas
}

// joinOpenAPI adds to each field what its property says. Properties of inlined structs are found in
// the schemas of their parents.
func joinOpenAPI(reached *types, schemas map[string]*openAPISchema) {
	for t, row := range reached.structs {
		schema := schemas[modelName(t)]
		if schema == nil {
			continue
		}
		if schema.Validations != nil {
			log.Fatalf("%s: rules are not expected", t)
		}
		row.atomic = schema.MapType == "atomic"
		joinStruct(reached, row, schema)
	}
}

func joinStruct(reached *types, row *goStruct, schema *openAPISchema) {
	for _, f := range row.fields {
		if f.inline {
			joinStruct(reached, reached.structs[f.goType], schema)
			continue
		}
		found := schema.Properties[f.json]
		if found == nil {
			log.Fatalf("%s.%s is not in OpenAPI", row.goType, f.json)
		}
		joined := property{
			known:    true,
			required: slices.Contains(schema.Required, f.json),
			listType: found.ListType,
			listKeys: found.ListMapKeys,
			mapType:  found.MapType,
			enum:     found.Enum,
		}
		if found.Default != nil {
			var compact bytes.Buffer
			must(json.Compact(&compact, found.Default))
			joined.defaultJSON = compact.String()
		}
		for _, element := range []*openAPISchema{found.Items, found.AdditionalProperties} {
			if element != nil {
				joined.enum = append(joined.enum, element.Enum...)
				refuseNestedMarkers(row, f, element)
			}
		}
		if f.openAPI.known && !reflect.DeepEqual(f.openAPI, joined) {
			log.Fatalf("%s.%s: parents disagree about it", row.goType, f.json)
		}
		f.openAPI = joined
	}
}

// refuseNestedMarkers: a row has one place for markers. Elements without markers of their own need
// no other.
func refuseNestedMarkers(row *goStruct, f *field, schema *openAPISchema) {
	if schema.ListType != "" || schema.ListMapKeys != nil || schema.MapType != "" {
		log.Fatalf("%s.%s: markers inside of its elements", row.goType, f.json)
	}
	for _, element := range []*openAPISchema{schema.Items, schema.AdditionalProperties} {
		if element != nil {
			refuseNestedMarkers(row, f, element)
		}
	}
}

// modelName is the name of a Go type's schema: the domain of its package reversed, then the path.
func modelName(t reflect.Type) string {
	domain, path, _ := strings.Cut(t.PkgPath(), "/")
	labels := strings.Split(domain, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".") + "." + strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}
