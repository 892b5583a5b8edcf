// What a Go operator does with client-go, told in one line per step. Takes a kubeconfig. With a
// namespace, a name and an identity, it only stands for that Lease.
//
// Typed clients speak protobuf, as those of Kubernetes itself do; the others speak JSON.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const namespace = "golang"

type clients struct {
	config   *rest.Config
	typed    kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err)
	config.QPS = -1
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c := clients{
		config:   config,
		typed:    kubernetes.NewForConfigOrDie(protobuf),
		dynamic:  dynamic.NewForConfigOrDie(config),
		metadata: metadata.NewForConfigOrDie(metadata.ConfigFor(config)),
	}
	if len(os.Args) > 2 {
		stand(c.typed, os.Args[2], os.Args[3], os.Args[4])
		return
	}
	// Nothing here takes long; what never comes ends the program.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	_, err = c.typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
	}, metav1.CreateOptions{})
	check(err)
	objects(ctx, c)
	calls(ctx, c)
	define(ctx, c)
	customObjects(ctx, c)
	typedInformers(ctx, c)
	otherInformers(ctx, c)
	operator(ctx, c)
	leaders(ctx, c)
}

func tell(what string, values ...any) {
	fmt.Println(what, strings.TrimSuffix(fmt.Sprintln(values...), "\n"))
}

func check(err error) {
	if err != nil {
		log.Output(2, err.Error())
		os.Exit(1)
	}
}

// The word for what a server refused.
func reason(err error) metav1.StatusReason {
	return apierrors.ReasonForError(err)
}

func names[T metav1.Object](objects []T) []string {
	names := make([]string, 0, len(objects))
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	sort.Strings(names)
	return names
}
