// The measured operator on controller-runtime: one cached read, one status write.
// It tells when its cache is synced, as its peers do.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var group = schema.GroupVersion{Group: "bench.example.com", Version: "v1"}

type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec"`
	Status            WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Round   int64  `json:"round"`
	Image   string `json:"image"`
	Payload string `json:"payload"`
}

type WidgetStatus struct {
	Round int64 `json:"round,omitempty"`
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

func (in *Widget) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func (in *WidgetList) DeepCopyObject() runtime.Object {
	out := *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Widget, len(in.Items))
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopyObject().(*Widget)
	}
	return &out
}

type reconciler struct {
	client.Client
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var widget Widget
	if err := r.Get(ctx, request.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if widget.Status.Round == widget.Spec.Round {
		return ctrl.Result{}, nil
	}
	// What has changed is sent, as its peers do.
	before := client.MergeFrom(widget.DeepCopyObject().(*Widget))
	widget.Status.Round = widget.Spec.Round
	return ctrl.Result{}, r.Status().Patch(ctx, &widget, before)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	log.SetLogger(logr.Discard())
	workers, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(group, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, group)
	access, err := config.GetConfig()
	if err != nil {
		return err
	}
	// Nobody waits for a limit of the client's own.
	access.QPS = -1
	mgr, err := ctrl.NewManager(access, manager.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	r := &reconciler{Client: mgr.GetClient()}
	options := controller.Options{MaxConcurrentReconciles: workers}
	if err := ctrl.NewControllerManagedBy(mgr).For(&Widget{}).WithOptions(options).Complete(r); err != nil {
		return err
	}
	tell := manager.RunnableFunc(func(ctx context.Context) error {
		// Waits until it is synced.
		if _, err := mgr.GetCache().GetInformer(ctx, &Widget{}); err != nil {
			return err
		}
		fmt.Println("synced")
		<-ctx.Done()
		return nil
	})
	if err := mgr.Add(tell); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
