// Has fabric8's kube-api-test and jenvtest start a control plane, and does what tests on one do.
// Takes the folder that their programs are in.

import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;

import java.util.Map;

public class Envtest {
    public static void main(String[] arguments) {
        var fabric8 = new io.fabric8.kubeapitest.KubeAPIServer(
            io.fabric8.kubeapitest.KubeAPIServerConfigBuilder.anAPIServerConfig()
                .withTestDir(arguments[0]).withOfflineMode(true).build());
        fabric8.start();
        use("kube-api-test", fabric8.getKubeConfigYaml());
        fabric8.stop();

        var jenvtest = new io.javaoperatorsdk.jenvtest.KubeAPIServer(
            io.javaoperatorsdk.jenvtest.KubeAPIServerConfigBuilder.anAPIServerConfig()
                .withJenvtestDir(arguments[0]).withOfflineMode(true)
                .withWaitForEtcdHealthCheckOnStartup(true).build());
        jenvtest.start();
        use("jenvtest", jenvtest.getKubeConfigYaml());
        jenvtest.stop();
    }

    static void use(String who, String kubeconfig) {
        Config config = Config.fromKubeconfig(kubeconfig);
        try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
            var made = new ConfigMapBuilder()
                .withNewMetadata().withName("made").endMetadata().withData(Map.of("k", "1")).build();
            client.configMaps().inNamespace("default").resource(made).create();
            var read = client.configMaps().inNamespace("default").withName("made").get();
            var version = client.getKubernetesVersion();
            System.out.println(who + " " + version.getMinor() + " " + read.getData());
        }
    }
}
