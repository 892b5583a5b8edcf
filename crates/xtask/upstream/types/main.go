// Command types writes what upstream's Go types, OpenAPI documents and discovery say of every
// built-in kind: facts for a table, and examples of every kind in JSON and protobuf as upstream
// encodes it.
//
// The API server that KUBECONFIG points at decides which groups and versions are in the table.
package main

import (
	"bytes"
	"embed"
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
)

//go:embed *.go
var sources embed.FS

func main() {
	log.SetFlags(0)
	data := flag.String("data", "", "folder for types.txt and resources.txt")
	golden := flag.String("golden", "", "folder for golden.txt.gz")
	check := flag.Bool("check", false, "write nothing; fail when a file is not what would be written")
	flag.Parse()
	if *data == "" || *golden == "" {
		log.Fatal("both -data and -golden are needed")
	}

	server := connect()
	header := header(server)
	groups := discover(server)
	kinds := selectKinds(groups)
	structs := reflectTypes(kinds)
	joinOpenAPI(structs, readOpenAPI(server, groups))

	put := write
	if *check {
		put = compare
	}
	put(filepath.Join(*data, "types.txt"), header+renderTypes(kinds, structs))
	put(filepath.Join(*data, "resources.txt"), header+renderResources(groups, priorities(server)))
	put(filepath.Join(*golden, "golden.txt.gz"), header+renderGolden(kinds))
}

func connect() discovery.DiscoveryInterface {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(err)
	client, err := discovery.NewDiscoveryClientForConfig(config)
	must(err)
	return client
}

// header names everything the output depends on: the server's version and this program's sources.
func header(server discovery.DiscoveryInterface) string {
	version, err := server.ServerVersion()
	must(err)
	return fmt.Sprintf("upstream %s\ngenerator %016x\n", version.GitVersion, sourcesHash())
}

// sourcesHash is FNV-1a over the sources in the order of their names, so that a test without Go
// can compute it too.
func sourcesHash() uint64 {
	hash := fnv.New64a()
	entries, err := fs.ReadDir(sources, ".")
	must(err)
	for _, entry := range entries {
		content, err := sources.ReadFile(entry.Name())
		must(err)
		hash.Write(content)
	}
	return hash.Sum64()
}

func write(path, content string) {
	written := []byte(content)
	if isCompressed(path) {
		written = compress(written)
	}
	must(os.WriteFile(path, written, 0o644))
}

// compare looks at what is inside: compressors differ from release to release.
func compare(path, content string) {
	found, err := os.ReadFile(path)
	must(err)
	if isCompressed(path) {
		found = decompress(found)
	}
	if !bytes.Equal(found, []byte(content)) {
		log.Fatalf("%s is not what upstream says: run cargo xtask types", filepath.Base(path))
	}
}

func isCompressed(path string) bool {
	return filepath.Ext(path) == ".gz"
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// quoteList joins values that must not contain the separators of the table.
func quoteList(values []string) string {
	for _, value := range values {
		if strings.ContainsAny(value, ",\n\t") || value == "" && len(values) == 1 {
			log.Fatalf("%q cannot be written in the table", value)
		}
	}
	return strings.Join(values, ",")
}
