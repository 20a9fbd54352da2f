// A server, an access point and stations in ns-3 3.37 (Debian's libns3-dev): what docs/simulator-wifi.md compares.
//
// Every setting is an argument; attributes of ns-3 are too (--ns3::TcpSocket::SegmentSize=1400). Prints what each flow received, in bit/s.

#include <cmath>
#include <iostream>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/propagation-module.h"
#include "ns3/wifi-module.h"

using namespace ns3;

namespace {

const uint16_t kPort = 5001;
// Stations have joined by then.
const double kStart = 1.0;

struct Settings {
  std::string standard = "802.11g", mode = "ErpOfdmRate54Mbps", control = "constant", error = "Table";
  double distance = 10, exponent = 2.5, reference = 46.67, delay_ms = 10, wired_mbps = 100, udp_mbps = 0, seconds = 20;
  uint32_t stations = 1, segment = 1400, seed = 1;
  bool fading = true, short_slot = true, up = false;
};

Settings Read(int argc, char** argv) {
  Settings given;
  CommandLine line;
  line.AddValue("standard", "802.11b or 802.11g", given.standard);
  line.AddValue("mode", "of data frames", given.mode);
  line.AddValue("control", "constant or aarf", given.control);
  line.AddValue("error", "Table, Nist or Yans", given.error);
  line.AddValue("distance", "of the stations, m", given.distance);
  line.AddValue("exponent", "of the path loss", given.exponent);
  line.AddValue("reference", "loss at 1 m, dB", given.reference);
  line.AddValue("delay", "of the wire, ms", given.delay_ms);
  line.AddValue("wired", "rate of the wire, Mbit/s", given.wired_mbps);
  line.AddValue("udp", "rate of datagrams, Mbit/s; 0: TCP", given.udp_mbps);
  line.AddValue("seconds", "of traffic", given.seconds);
  line.AddValue("stations", "around the access point", given.stations);
  line.AddValue("segment", "bytes of a segment", given.segment);
  line.AddValue("seed", "of the run", given.seed);
  line.AddValue("fading", "Nakagami's", given.fading);
  line.AddValue("shortSlot", "of 9 us", given.short_slot);
  line.AddValue("up", "stations send", given.up);
  line.Parse(argc, argv);
  return given;
}

NetDeviceContainer InstallWifi(const Settings& given, Ptr<Node> ap, const NodeContainer& stations) {
  YansWifiChannelHelper channel;
  channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
  channel.AddPropagationLoss("ns3::LogDistancePropagationLossModel", "Exponent", DoubleValue(given.exponent), "ReferenceLoss",
                             DoubleValue(given.reference));
  if (given.fading) channel.AddPropagationLoss("ns3::NakagamiPropagationLossModel");
  YansWifiPhyHelper phy;
  phy.SetChannel(channel.Create());
  phy.SetErrorRateModel(given.error == "Table" ? "ns3::TableBasedErrorRateModel" : "ns3::" + given.error + "ErrorRateModel");
  WifiHelper wifi;
  wifi.SetStandard(given.standard == "802.11b" ? WIFI_STANDARD_80211b : WIFI_STANDARD_80211g);
  const std::string slowest = given.standard == "802.11b" ? "DsssRate1Mbps" : "ErpOfdmRate6Mbps";
  if (given.control == "aarf")
    wifi.SetRemoteStationManager("ns3::AarfWifiManager");
  else
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue(given.mode), "ControlMode", StringValue(slowest));
  WifiMacHelper mac;
  const Ssid ssid("ns-3");
  mac.SetType("ns3::ApWifiMac", "Ssid", SsidValue(ssid), "ShortSlotTimeSupported", BooleanValue(given.short_slot));
  NetDeviceContainer devices = wifi.Install(phy, mac, ap);
  mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(ssid), "ShortSlotTimeSupported", BooleanValue(given.short_slot));
  devices.Add(wifi.Install(phy, mac, stations));
  return devices;
}

void Place(const Settings& given, Ptr<Node> ap, const NodeContainer& stations) {
  auto places = CreateObject<ListPositionAllocator>();
  places->Add(Vector(0, 0, 0));
  for (uint32_t each = 0; each < stations.GetN(); ++each) {
    const double angle = 2 * M_PI * each / stations.GetN();
    places->Add(Vector(given.distance * std::cos(angle), given.distance * std::sin(angle), 0));
  }
  MobilityHelper mobility;
  mobility.SetPositionAllocator(places);
  mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
  mobility.Install(ap);
  mobility.Install(stations);
}

Ptr<PacketSink> AddFlow(const Settings& given, Ptr<Node> from, Ptr<Node> to, Ipv4Address address, uint16_t port) {
  const bool udp = given.udp_mbps > 0;
  const std::string factory = udp ? "ns3::UdpSocketFactory" : "ns3::TcpSocketFactory";
  PacketSinkHelper sinks(factory, InetSocketAddress(Ipv4Address::GetAny(), port));
  ApplicationContainer sink = sinks.Install(to);
  const InetSocketAddress remote(address, port);
  ApplicationContainer source;
  if (udp) {
    OnOffHelper datagrams(factory, remote);
    datagrams.SetConstantRate(DataRate(static_cast<uint64_t>(given.udp_mbps * 1e6)), given.segment);
    source = datagrams.Install(from);
  } else {
    BulkSendHelper bulk(factory, remote);
    bulk.SetAttribute("SendSize", UintegerValue(given.segment));
    source = bulk.Install(from);
  }
  source.Start(Seconds(kStart));
  return DynamicCast<PacketSink>(sink.Get(0));
}

}  // namespace

int main(int argc, char** argv) {
  const Settings given = Read(argc, argv);
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(given.segment));
  RngSeedManager::SetSeed(given.seed);
  NodeContainer wired(2), stations(given.stations);
  Ptr<Node> server = wired.Get(0), ap = wired.Get(1);
  PointToPointHelper wire;
  wire.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(given.wired_mbps * 1e6))));
  wire.SetChannelAttribute("Delay", TimeValue(Seconds(given.delay_ms / 1e3)));
  const NetDeviceContainer ends = wire.Install(wired);
  const NetDeviceContainer radios = InstallWifi(given, ap, stations);
  Place(given, ap, stations);
  InternetStackHelper stack;
  stack.Install(wired);
  stack.Install(stations);
  Ipv4AddressHelper addresses;
  addresses.SetBase("10.1.1.0", "255.255.255.0");
  const Ipv4InterfaceContainer wire_addresses = addresses.Assign(ends);
  addresses.SetBase("10.1.2.0", "255.255.255.0");
  const Ipv4InterfaceContainer radio_addresses = addresses.Assign(radios);
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  std::vector<Ptr<PacketSink>> sinks;
  for (uint32_t each = 0; each < given.stations; ++each) {
    const uint16_t port = kPort + each;
    sinks.push_back(given.up ? AddFlow(given, stations.Get(each), server, wire_addresses.GetAddress(0), port)
                             : AddFlow(given, server, stations.Get(each), radio_addresses.GetAddress(1 + each), port));
  }
  Simulator::Stop(Seconds(kStart + given.seconds));
  Simulator::Run();
  for (const auto& sink : sinks) std::cout << sink->GetTotalRx() * 8 / given.seconds << '\n';
  Simulator::Destroy();
}
